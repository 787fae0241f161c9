"""The test hook: software skews of single cores' clocks.

Set `RECBULC_TEST_CLOCKS` to a JSON object to run any command on clocks it cannot find on this machine, for example
`{"skews": {"1": {"offset_ticks": 1000}}}` or `{"width_bits": 32}`. Results measured so are marked as injected, and
models made so are refused where real recordings are ordered. `root` puts a made-up /proc and /sys in the place of this
machine's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from recbulc.errors import InputError

ENVIRONMENT = "RECBULC_TEST_CLOCKS"


@dataclass(frozen=True)
class Skew:
    """What is done to one core's readings: an offset, and a rate that counts from `origin` (a raw reading)."""

    offset_ticks: int = 0
    rate_ppm: float = 0.0
    origin: int = 0


@dataclass(frozen=True)
class Skews:
    """The skews of all cores, and the width of all counters."""

    skews: Mapping[str, Skew] = field(default_factory=dict)
    width_bits: int = 64
    root: str = "/"  # where /proc and /sys are looked for

    @property
    def injected(self) -> bool:
        """Is anything changed at all?"""
        return self != NO_SKEWS

    def as_c(self, core: int) -> tuple[int, float, int, int]:
        """One core's `struct rb_skew`."""
        skew = self.skews.get(str(core), Skew())
        return (skew.offset_ticks, skew.rate_ppm, skew.origin, self.width_bits)

    @classmethod
    def from_environment(cls) -> Skews:
        """What the test hook asks for; nothing when the variable is not set."""
        text = os.environ.get(ENVIRONMENT)
        if not text:
            return NO_SKEWS
        try:
            skews = msgspec.json.decode(text, type=Skews)
        except (msgspec.DecodeError, UnicodeError) as error:
            raise InputError(f"{ENVIRONMENT}: {error}", "see docs/testing.md for its form") from error
        if not 8 <= skews.width_bits <= 64:
            raise InputError(f"{ENVIRONMENT}: width_bits is {skews.width_bits}", "choose 8 to 64")
        return skews


NO_SKEWS = Skews()
