"""Counters that overflow (ReCBuLC §3.4): differences and unwrapping for any width up to 64 bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recbulc.tsc_probe.rounds import Stamps


def difference(later: Stamps, earlier: Stamps, width_bits: int) -> npt.NDArray[np.int64]:
    """later − earlier, exact as long as it lies within half a period either way."""
    shift = np.uint64(64 - width_bits)
    raw = np.subtract(later, earlier, dtype=np.uint64)
    return (raw << shift).view(np.int64) >> np.int64(shift)


@dataclass(frozen=True)
class Unwrapped:
    """Stamps of one thread on a line that does not overflow.

    `ticks` counts from the origin; `overflows` is how often the counter passed its end; `ambiguous` are the indices of
    stamps whose gap to the one before is another one by the wall clock (a period or more, or backwards), so that the
    number of overflows is not certain there.
    """

    ticks: npt.NDArray[np.int64]
    overflows: int
    ambiguous: npt.NDArray[np.intp]


def unwrap(
    stamps: Stamps,
    width_bits: int,
    *,
    origin: int | None = None,
    wall_ns: npt.NDArray[np.int64] | None = None,
    hz: float | None = None,
) -> Unwrapped:
    """Unwrap the stamps of one thread, in the order in which it took them.

    Two adjacent stamps must be less than one period apart: the counter alone cannot tell a gap from the same gap plus
    a period. Where a wall clock is known at each stamp (`wall_ns`, with the counter's `hz`), longer gaps are found and
    reported. `origin` is a reading common to all threads, at most half a period from the first stamp.
    """
    if not 1 <= width_bits <= 64:
        raise ValueError(f"a counter of {width_bits} bits")
    if stamps.size == 0:
        return Unwrapped(np.empty(0, dtype=np.int64), 0, np.empty(0, dtype=np.intp))
    mask = np.uint64((1 << width_bits) - 1)
    gaps = np.diff(stamps) & mask
    first = 0 if origin is None else int(difference(stamps[:1], np.array([origin], dtype=np.uint64), width_bits)[0])
    ticks = np.concatenate([[first], first + np.cumsum(gaps.view(np.int64))]).astype(np.int64)
    ambiguous = np.empty(0, dtype=np.intp)
    if wall_ns is not None and hz is not None:
        expected = np.diff(wall_ns) * (hz / 1e9)
        # off by half a period or more: the wall clock and the counter cannot mean the same gap
        ambiguous = np.flatnonzero(np.abs(expected - gaps.astype(np.float64)) >= 2.0 ** (width_bits - 1)) + 1
    return Unwrapped(ticks, int(np.count_nonzero(stamps[1:] < stamps[:-1])), ambiguous)
