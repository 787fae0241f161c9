"""The probes on this machine's cores: typed calls into the C library.

One call plays many rounds without the GIL and without Python; callers keep calls short (some 100 ms) so that Ctrl-C is
answered between them.
"""

from __future__ import annotations

import secrets
import time
from typing import Any, Protocol

import numpy as np
from recbulc.tsc_probe._probe import ffi, lib

from recbulc.errors import MachineError
from recbulc.tsc_probe.rounds import (
    FlagRounds,
    HandoffRounds,
    Indices,
    LitmusRounds,
    RaceRounds,
    Shape,
    Stamps,
    Tester,
)
from recbulc.tsc_probe.sequences import SEQUENCES
from recbulc.tsc_probe.skew import NO_SKEWS, Skews

PATIENCE_MS = 10_000
FLAG_TOUR: int = lib.RB_FLAG_TOUR  # a batch of so many rounds has used every line of Scheme 2's flag equally often
LITMUS_SHAPES = {Shape.STORE: lib.RB_LITMUS_STORE, Shape.LOAD: lib.RB_LITMUS_LOAD}
TESTERS = {tester: getattr(lib, f"RB_TESTER_{tester.name}") for tester in Tester}


class Prober(Protocol):
    """What calibration needs of a machine; `NativeProber` is the real one, `SimulatedProber` a made-up one."""

    def race(self, pair: tuple[int, int], tester: Tester, rounds: int) -> RaceRounds:
        """Scheme 1 (Fig. 4 and 5)."""

    def handoff(self, pair: tuple[int, int], rounds: int) -> HandoffRounds:
        """Ping-pong with sound stamps."""

    def flag(self, pair: tuple[int, int], trigger: int | None, rounds: int) -> FlagRounds:
        """Scheme 2 (Fig. 6); without a trigger core the pair's cores release the flag in turn."""

    def readings(self, core: int, count: int) -> Stamps:
        """Consecutive readings of one core's counter, with varied gaps."""

    def counter_and_clock(self, core: int) -> tuple[int, int]:
        """One core's counter, and nanoseconds of CLOCK_MONOTONIC_RAW, at one instant."""

    def now_ns(self) -> int:
        """Nanoseconds since boot, suspends included."""

    def idle(self, seconds: float) -> None:
        """Let time pass."""


class NativeProber:
    """Probes with threads pinned to real cores; `skews` is the test hook."""

    def __init__(self, skews: Skews = NO_SKEWS) -> None:
        self._skews = skews

    def race(self, pair: tuple[int, int], tester: Tester, rounds: int) -> RaceRounds:
        """Scheme 1 (Fig. 4 and 5)."""
        before0, after0, before1, after1 = (_stamps(rounds) for _ in range(4))
        first, migrated = _bytes(rounds), _bytes(rounds)
        buffers = _pointers(before0, after0, before1, after1, first, migrated)
        self._check(lib.rb_scheme1(_run(rounds), self._cores(pair), TESTERS[tester], *buffers), pair)
        return RaceRounds(before0, after0, before1, after1, first, migrated.view(np.bool_))

    def handoff(self, pair: tuple[int, int], rounds: int) -> HandoffRounds:
        """Ping-pong with sound stamps."""
        sent, seen, back = (_stamps(rounds) for _ in range(3))
        migrated = _bytes(rounds)
        buffers = _pointers(sent, seen, back, migrated)
        self._check(lib.rb_handoff(_run(rounds), self._cores(pair), *buffers), pair)
        return HandoffRounds(sent, seen, back, migrated.view(np.bool_))

    def flag(self, pair: tuple[int, int], trigger: int | None, rounds: int) -> FlagRounds:
        """Scheme 2 (Fig. 6)."""
        ts0, ts1 = _stamps(rounds), _stamps(rounds)
        who, migrated = _bytes(rounds), _bytes(rounds)
        cores = pair if trigger is None else (*pair, trigger)
        buffers = _pointers(ts0, ts1, who, migrated)
        status = lib.rb_scheme2(_run(rounds), self._cores(cores), len(cores), *buffers)
        self._check(status, cores)
        return FlagRounds(ts0, ts1, who, migrated.view(np.bool_))

    def litmus(self, pair: tuple[int, int], shape: Shape, sequence: str, rounds: int) -> LitmusRounds:
        """Adversarial rounds for one stamp sequence."""
        stamp0, stamp1 = _stamps(rounds), _stamps(rounds)
        saw = _bytes(rounds)
        buffers = _pointers(stamp0, stamp1, saw)
        number = SEQUENCES.index(sequence)
        self._check(lib.rb_litmus(_run(rounds), self._cores(pair), LITMUS_SHAPES[shape], number, *buffers), pair)
        return LitmusRounds(shape, stamp0, stamp1, saw.view(np.bool_))

    def readings(self, core: int, count: int) -> Stamps:
        """Consecutive readings of one core's bare counter."""
        tsc = _stamps(count)
        self._check(lib.rb_counter_readings(self._cores((core,)), count, _pointer(tsc)), (core,))
        return tsc

    def counter_and_clock(self, core: int) -> tuple[int, int]:
        """The counter and CLOCK_MONOTONIC_RAW, as tightly as 100 tries get them."""
        tsc, ns = ffi.new("uint64_t *"), ffi.new("int64_t *")
        self._check(lib.rb_counter_and_clock(self._cores((core,)), 100, tsc, ns), (core,))
        return int(tsc[0]), int(ns[0])

    def stamp_cost_ns(self, core: int, sequence: str, count: int = 20_000) -> float:
        """Nanoseconds per stamp, back to back."""
        ns = ffi.new("double *")
        self._check(lib.rb_stamp_cost(self._cores((core,)), SEQUENCES.index(sequence), count, ns), (core,))
        return float(ns[0])

    def now_ns(self) -> int:
        """CLOCK_BOOTTIME."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def idle(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)

    def _cores(self, numbers: tuple[int, ...]) -> Any:  # noqa: ANN401 (a cffi array)
        return ffi.new("struct rb_core[]", [(number, self._skews.as_c(number)) for number in numbers])

    @staticmethod
    def _check(status: int, cores: tuple[int, ...]) -> None:
        named = ", ".join(map(str, cores))
        if status == lib.RB_EPIN:
            raise MachineError(
                f"a thread could not be pinned to each of the cores {named}",
                "use cores that are on-line and in this process's affinity mask (see `taskset -p $$`)",
            )
        if status == lib.RB_ESTALL:
            raise MachineError(
                f"the threads on the cores {named} made no progress for {PATIENCE_MS // 1000} s",
                "give these cores some idle time, or choose others with --cores",
            )
        if status != lib.RB_OK:
            raise MachineError("no memory or threads left for the probes", "raise `ulimit -u` or free memory")


def hypervisor() -> str:
    """The hypervisor's signature (`KVMKVMKVM`, ...), or `none`."""
    name = ffi.new("char[13]")
    lib.rb_hypervisor(name)
    return ffi.string(name).decode("ascii", "replace") or "none"


def lfence_orders() -> bool:
    """Is LFENCE known to hold back a clock read on this processor?"""
    return bool(lib.rb_lfence_orders())


def _run(rounds: int) -> Any:  # noqa: ANN401 (a cffi struct)
    return ffi.new("struct rb_run *", {"rounds": rounds, "patience_ms": PATIENCE_MS, "seed": secrets.randbits(63)})


def _stamps(count: int) -> Stamps:
    # ones, not empty: the pages must be there before the first round (R4)
    return np.ones(count, dtype=np.uint64)


def _bytes(count: int) -> Indices:
    array = np.ones(count, dtype=np.uint8)
    array.fill(0)
    return array


def _pointers(*arrays: Stamps | Indices) -> list[Any]:
    return [_pointer(array) for array in arrays]


def _pointer(array: Stamps | Indices) -> Any:  # noqa: ANN401 (a cffi pointer)
    return ffi.from_buffer("uint64_t[]" if array.dtype == np.uint64 else "uint8_t[]", array)
