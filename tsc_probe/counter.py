"""One counter by itself: in what steps it moves, and how fast."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recbulc.errors import MachineError
from recbulc.tsc_probe.native import Prober
from recbulc.tsc_probe.rounds import Stamps

READINGS = 20_000
SHARE = 0.9  # of the differences that a granule must divide
SPECTRUM = 1 << 16
LEAST_GAPS = 100
FASTEST_HZ = 8e9  # no counter ticks faster


@dataclass(frozen=True)
class Granule:
    """The step of a counter.

    `ticks`: readings between two steps are equal, but for `bump_ticks`: some processors return previous + 1 for a
    second read within one step, so that no two readings are the same.
    """

    ticks: int
    bump_ticks: int

    def __post_init__(self) -> None:
        if self.ticks < 1 or self.bump_ticks < 0:
            raise ValueError(f"a granule of {self.ticks} ticks and bumps of {self.bump_ticks}")

    @property
    def uncertainty_ticks(self) -> int:
        """By how much readings on two cores may differ more, or less, than a bound from other readings says.

        Each of the two differences, the one in the bound and the one that is bounded, lies within one step of the
        true skew or shares a step with it, which makes one granule; and each may contain one bumped reading.
        """
        return self.ticks + 2 * self.bump_ticks


def measure_granule(prober: Prober, cores: tuple[int, ...]) -> Granule:
    """The coarsest step and the largest bump of the cores' counters."""
    granules = [granule_of(prober.readings(core, READINGS)) for core in cores]
    return Granule(max(g.ticks for g in granules), max(g.bump_ticks for g in granules))


def granule_of(readings: Stamps) -> Granule:
    """The step of a counter from readings with varied gaps.

    Minimum and gcd are traps: a bumped reading makes both of them 1, and every bound too tight. Readings within one
    step are therefore left out, and the granule is the largest g that divides at least 90 % of the differences that
    remain. A counter scaled by a hypervisor has a step that is no whole number; it shows as a line in the spectrum of
    the differences.
    """
    fresh = np.concatenate([[True], np.diff(readings) > 1])  # neither equal to the reading before nor bumped
    gaps = np.diff(readings[fresh])
    gaps = gaps[gaps < SPECTRUM].astype(np.int64)
    if gaps.size < LEAST_GAPS:
        raise MachineError(
            f"the counter steps by {SPECTRUM} ticks or more, or does not move at all",
            "use a machine whose TSC counts finely; in a guest, pass the host's through",
        )
    values, counts = np.unique(gaps, return_counts=True)
    wanted = int(np.ceil(SHARE * gaps.size))  # so many gaps are multiples of the granule, and none of those is shorter
    candidates = np.arange(1, int(np.partition(gaps, gaps.size - wanted)[gaps.size - wanted]) + 1)
    divided = np.array([counts[values % g == 0].sum() for g in candidates])
    ticks = int(candidates[divided >= wanted][-1])
    if ticks == 1:
        scaled = _step_in_spectrum(gaps)
        return Granule(int(np.ceil(scaled)), 1) if scaled > 1 else Granule(1, 0)
    return Granule(ticks, _longest_run(~fresh & np.concatenate([[False], np.diff(readings) == 1])))


def _longest_run(marks: npt.NDArray[np.bool_]) -> int:
    """How many marks follow each other at most."""
    ends = np.flatnonzero(np.diff(np.concatenate([[0], marks.astype(np.int8), [0]])))
    return int(np.max(ends[1::2] - ends[::2], initial=0))


def _step_in_spectrum(gaps: npt.NDArray[np.int64]) -> float:
    """The longest period, whole or not, that nearly all gaps are multiples of; 1 when there is none."""
    spread = float(np.subtract(*np.percentile(gaps, [95, 5])))
    if spread < 8:
        return 1.0
    strength = np.abs(np.fft.rfft(np.bincount(gaps, minlength=SPECTRUM), SPECTRUM)) / gaps.size
    lowest = int(np.ceil(4 * SPECTRUM / spread))  # longer periods hold all gaps within a quarter of themselves
    strong = np.flatnonzero(strength[lowest:] >= SHARE) + lowest
    if strong.size == 0:
        return 1.0
    line = strong[strong < strong[0] + SPECTRUM / spread]
    return float(SPECTRUM / line[np.argmax(strength[line])])


def measure_frequency_hz(prober: Prober, core: int, width_bits: int = 64, seconds: float = 0.2) -> float:
    """Ticks per second against CLOCK_MONOTONIC_RAW; a narrow counter is read again before it has overflowed."""
    period = 1 << width_bits
    tsc_start, ns_start = prober.counter_and_clock(core)
    prober.idle(min(seconds, period / FASTEST_HZ / 4))
    tsc_end, ns_end = prober.counter_and_clock(core)
    return (tsc_end - tsc_start) % period / (ns_end - ns_start) * 1e9
