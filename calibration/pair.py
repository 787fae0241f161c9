"""From the episodes of one pair to what is claimed of its clocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor
from statistics import fmean

import numpy as np

from recbulc.calibration.episode import Episode
from recbulc.calibration.interval import Interval, intersection
from recbulc.calibration.scheme2 import LEAST_SAMPLES, Ticks, estimate, variance_within
from recbulc.errors import RecbulcError
from recbulc.tsc_probe.counter import Granule
from recbulc.tsc_probe.rounds import Tester

UNSOUND_TESTERS = frozenset(tester.value for tester in Tester if not tester.sound)
STEP_SPREADS = 6.0  # a step of the skew is this many standard errors of d ...
STEP_TICKS = 3.0  # ... and longer than where the flag happens to lie makes d differ
WANDER_GRANULES = 8  # more than that between the stretches of one calibration is no move of a guest's cores


@dataclass(frozen=True)
class PairClock:
    """What is known of TS_y − TS_x at `boottime_ns`, for cores (x, y).

    `sound` is proven by single rounds (Scheme 1), `confident` holds with probability `confidence` if the paths between
    the two cores are alike (Scheme 2) and lies within `sound`. Both are already widened by the counters' granule.
    `testers` are the raw bounds of Eq. 3. `stretches` are the means of d of every half episode, in groups between which
    the skew stepped; mostly there is one group. `seen` are the values of d between earlier moves of a guest's cores, on
    this boot and before `boottime_ns` (`moves.py`).
    """

    cores: tuple[int, int]
    boottime_ns: int
    sound: Interval
    confident: Interval
    confidence: float
    testers: dict[str, Interval]
    d_ticks: float
    half_width_ticks: float
    autocorrelation: float
    transfer_ticks: float
    round_trip_ticks: int
    stretches: tuple[tuple[float, ...], ...]
    tester_rounds: int
    rounds: int
    dropped: int
    seen: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.sound.contradictory or self.confident.contradictory:
            raise ValueError("an interval that no skew fits")
        if not self.stretches or not all(self.stretches):
            raise ValueError("a pair without samples")

    @property
    def wander_ticks(self) -> float:
        """How far the skew itself moved; 0 if it stood still."""
        centres = [fmean(stretch) for stretch in self.stretches]
        return max(centres) - min(centres)


def summarise(
    cores: tuple[int, int],
    episodes: Sequence[Episode],
    now_ns: int,
    confidence: float,
    granule: Granule,
    drift_ticks_per_ns: float,
    untrusted: frozenset[str] = UNSOUND_TESTERS,
) -> PairClock:
    """Both schemes over all episodes; what is claimed holds at `now_ns`, when the last episode has ended.

    While the skew stands still every episode bounds the same thing, and bounds intersect, each looser by what clocks
    may have drifted since. But a guest's skew steps when its cores are moved, and a bound may be that of another step:
    so `sound` is widened by all that d has varied, whether that was a step or noise. `confident` speaks of the last
    stretch, in which we are.
    """
    usable = [episode for episode in episodes if min(episode.d_before.size, episode.d_after.size) >= LEAST_SAMPLES]
    if not usable:
        raise RecbulcError(
            f"no undisturbed round on the cores {cores[0]} and {cores[1]}", "stop other work on these cores and repeat"
        )
    halves = [half for episode in usable for half in (episode.d_before, episode.d_after)]
    means, noise = means_and_noise(halves)
    stretches = split_at_steps(means, noise)
    centres = [fmean(stretch) for stretch in stretches]
    wander, spread = max(centres) - min(centres), max(means) - min(means)
    transfer = fmean(episode.transfer_ticks for episode in usable)
    drifted = (now_ns - usable[0].began_ns) * drift_ticks_per_ns
    round_trip = min(episode.round_trip_ticks for episode in usable)
    proven = intersection(
        bound.widened(drift_widening((now_ns - episode.began_ns) * drift_ticks_per_ns, granule, round_trip))
        for episode in usable
        for name, bound in episode.bounds.items()
        if name not in untrusted
    )
    sound = proven.widened(granule.uncertainty_ticks + spread)
    explained = max(WANDER_GRANULES * granule.ticks, transfer / 10) + drifted + STEP_SPREADS * noise
    if sound.contradictory or wander > explained:
        raise RecbulcError(
            f"the clocks of the cores {cores[0]} and {cores[1]} changed while they were measured",
            "repeat the calibration; if this stays, the machine's clocks cannot order events",
        )
    last = len(stretches[-1])
    variance, freedom = variance_within(stretches)
    skew = estimate(np.concatenate(halves[-last:]), confidence, (variance / last, freedom))
    narrow = Interval(floor(skew.centre - skew.half_width), ceil(skew.centre + skew.half_width))
    confident = narrow.widened(granule.uncertainty_ticks).intersection(sound)
    return PairClock(
        cores=cores,
        boottime_ns=now_ns,
        sound=sound,
        # outside of what is proven, the paths are not alike and Scheme 2 tells nothing: fall back to the proof
        confident=sound if confident.contradictory else confident,
        confidence=confidence,
        testers={name: intersection(episode.bounds[name] for episode in usable) for name in usable[0].bounds},
        d_ticks=skew.centre,
        half_width_ticks=skew.half_width,
        autocorrelation=skew.autocorrelation,
        transfer_ticks=transfer,
        round_trip_ticks=round_trip,
        stretches=tuple(tuple(stretch) for stretch in stretches),
        tester_rounds=sum(episode.tester_rounds for episode in episodes),
        rounds=sum(episode.rounds for episode in episodes),
        dropped=sum(episode.dropped for episode in episodes),
    )


def means_and_noise(samples: Sequence[Ticks]) -> tuple[list[float], float]:
    """The means of d over every one of several short measurements, and the usual standard error of such a mean."""
    means = [float(d.mean()) for d in samples]
    return means, float(np.median([d.std() / d.size**0.5 for d in samples]))


def split_at_steps(means: Sequence[float], noise: float) -> list[list[float]]:
    """Cut the values of d where the skew has stepped, so that it stands still within each stretch."""
    step = max(STEP_TICKS, STEP_SPREADS * noise)
    stretches = [[means[0]]]
    for mean in means[1:]:
        if abs(mean - fmean(stretches[-1])) > step:
            stretches.append([])
        stretches[-1].append(mean)
    return stretches


def drift_widening(drift_ticks: float, granule: Granule, round_trip_ticks: int) -> float:
    """By how much a drift loosens a bound on readings, which move in whole granules.

    A bound contains a transfer from core to core. That makes up for the rounding, unless the granule is the longer.
    """
    if round_trip_ticks >= 4 * granule.ticks:
        return drift_ticks
    return ceil(drift_ticks / granule.ticks) * granule.ticks
