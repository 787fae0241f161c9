"""What a trace says about itself: `meta.json` and `threads.json` (docs/trace.md describes both).

File format history:
1: first version.
"""

from __future__ import annotations

import msgspec

from recbulc.calibration.interval import UNBOUNDED, Interval
from recbulc.calibration.model import ClockModel, Kind
from recbulc.schedule import Site, Verdict
from recbulc.tsc_probe.counter import Granule
from recbulc.tsc_probe.skew import Skews

FORMAT = "recbulc-trace"
VERSION = 1
SAME_CORE = Interval(0, 0)


class PairSkew(msgspec.Struct, frozen=True):
    """Bounds of TS_y − TS_x for cores (x, y)."""

    cores: tuple[int, int]
    sound: Interval
    confident: Interval


class TraceClocks(msgspec.Struct, frozen=True, kw_only=True):
    """The clocks of a recording: measured before it, after it, and by the model; `pairs` is the hull that orders it.

    `modified`: the clocks changed between before and after beyond what moving cores explain (ReCBuLC §3.2, §6.5).
    Stamps of different cores then prove nothing, and `pairs` is unbounded.
    """

    hz: float
    granule: Granule
    width_bits: int
    modified: bool
    why: str  # it is modified; "" where it is not
    pairs: tuple[PairSkew, ...]
    model: tuple[PairSkew, ...]
    before: tuple[PairSkew, ...]
    after: tuple[PairSkew, ...]
    injected: Skews | None  # by the test hook; applied to the stamps when the trace is loaded

    def interval(self, x: int, y: int, kind: Kind = "sound") -> Interval:
        """Bounds of TS_y − TS_x, read at one instant; unbounded for cores that nobody measured."""
        if x == y:
            return SAME_CORE
        for pair in self.pairs:
            if set(pair.cores) == {x, y}:
                bounds = pair.sound if kind == "sound" else pair.confident
                return bounds if pair.cores == (x, y) else bounds.reversed()
        return UNBOUNDED


class Meta(msgspec.Struct, frozen=True, kw_only=True):
    """Everything but the events and the threads."""

    program: str
    build_id: str  # sha256 of the executable's file
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    stdin: bytes
    level: str
    stamp: str
    recorder: str
    cores: tuple[int, ...]
    pinned: bool
    seed: int
    strategy: str
    run: int  # which of the runs that were made this is, from 1
    timeout_s: float
    created: str
    complete: bool  # false: recbulc itself ended before the recording did
    clocks: TraceClocks
    verdict: Verdict  # its sites are global numbers of sites; -1: none
    format: str = FORMAT
    version: int = VERSION


class BlockedAt(msgspec.Struct, frozen=True):
    """In which call a thread was when the run ended."""

    kind: str
    call: int  # global number of the CALL site; 0: none
    object: int


class TraceThread(msgspec.Struct, frozen=True, kw_only=True):
    """One thread; its events are in <number>.events."""

    number: int
    name: str  # by creation: 0, 0.1, 0.1.2
    parent: int  # its own number for the first
    core: int  # on which it was pinned; -1: none
    events: int
    lost: bool  # its log could not grow: the rest of its events is missing
    end: str  # its last state: ended, blocked, running, timed, delayed, parked; none: never began
    blocked: BlockedAt | None
    pthread: int  # its pthread_t, which glibc keeps at the top of its stack


class TraceSites(msgspec.Struct, frozen=True):
    """The sites that the events name; `system` are those of them that are not in the user's own code."""

    sites: tuple[Site, ...]
    system: tuple[int, ...]


def skews_of(model: ClockModel) -> tuple[PairSkew, ...]:
    """The intervals of a calibration."""
    return tuple(PairSkew(pair.cores, pair.sound, pair.confident) for pair in model.pairs)
