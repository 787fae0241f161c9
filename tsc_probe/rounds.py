"""What the probes hand over: one array element per round, raw stamps, nothing judged yet."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

Stamps = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.uint8]


class Tester(Enum):
    """The testers of ReCBuLC Fig. 5; the value is their name in tables and files."""

    A = "5a"
    B = "5b"
    C = "5c"
    D = "5d"
    C_BARE = "5c-bare"
    D_BARE = "5d-bare"

    @property
    def sound(self) -> bool:
        """Does every round have its write between its two stamps? The forms (c) and (d) as printed may not."""
        return self not in {Tester.C_BARE, Tester.D_BARE}

    @property
    def needs_lfence(self) -> bool:
        """Is it LFENCE that keeps the second stamp behind the write?"""
        return self in {Tester.A, Tester.C, Tester.D}


@dataclass(frozen=True)
class RaceRounds:
    """Fig. 4: both cores write X between two stamps; `first` (0 or 1) is whose write came first."""

    before0: Stamps
    after0: Stamps
    before1: Stamps
    after1: Stamps
    first: Indices
    migrated: Flags


@dataclass(frozen=True)
class HandoffRounds:
    """Ping-pong: `sent` on core 0, then `seen` on core 1, then `back` on core 0."""

    sent: Stamps
    seen: Stamps
    back: Stamps
    migrated: Flags


@dataclass(frozen=True)
class FlagRounds:
    """Fig. 6: the clocks of both workers when they saw the flag change.

    `trigger` is 0 or 1 where one of the workers released the flag itself (it then saw it first), 2 where a third core
    did and who saw it first has to be inferred.
    """

    ts0: Stamps
    ts1: Stamps
    trigger: Indices
    migrated: Flags

    @property
    def first_is_known(self) -> bool:
        """Was the flag released by the workers in turn?"""
        return bool(np.all(self.trigger < 2))


class Shape(Enum):
    """The two ways in which a stamp can be wrong (see `rb_litmus.c`)."""

    STORE = "store, stamp | stamp, load"
    LOAD = "load, stamp | stamp, store"


@dataclass(frozen=True)
class LitmusRounds:
    """An access then a stamp on core 0, a stamp then an access on core 1; did the read see the write?"""

    shape: Shape
    stamp0: Stamps
    stamp1: Stamps
    saw: Flags
