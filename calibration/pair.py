"""From the episodes of one pair to what is claimed of its clocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from recbulc.calibration.episode import Episode
from recbulc.calibration.interval import Interval, hull, intersection
from recbulc.calibration.scheme2 import estimate
from recbulc.errors import RecbulcError
from recbulc.tsc_probe.counter import Granule
from recbulc.tsc_probe.rounds import Tester

UNSOUND_TESTERS = {tester.value for tester in Tester if not tester.sound}
STEP_SPREADS = 6.0  # a step of the skew is this many times the noise between neighbouring episodes ...
STEP_TICKS = 3.0  # ... and at least so long; a shorter one is far below what any bound leaves open


@dataclass(frozen=True)
class PairClock:
    """What is known of TS_y − TS_x at `boottime_ns`, for cores (x, y).

    `sound` is proven by single rounds (Scheme 1), `confident` holds with probability `confidence` if the paths between
    the two cores are alike (Scheme 2) and lies within `sound`. Both are already widened by the counters' granule.
    `testers` are the raw bounds of Eq. 3. `samples` are the means of D of the episodes behind `confident`.
    `stretches` are the values of d between which the skew itself stepped during the calibration; mostly there is one.
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
    stretches: tuple[float, ...]
    samples: tuple[float, ...]
    rounds: int
    dropped: int

    @property
    def wander_ticks(self) -> float:
        """How far the skew itself moved; 0 if it stood still."""
        return max(self.stretches) - min(self.stretches)


def summarise(
    cores: tuple[int, int],
    episodes: Sequence[Episode],
    now_ns: int,
    confidence: float,
    granule: Granule,
    drift_ticks_per_ns: float,
) -> PairClock:
    """Both schemes over all episodes; what is claimed holds at `now_ns`, when the last episode has ended.

    While the skew stands still every episode bounds the same thing, and bounds intersect, each looser by what clocks
    may have drifted since. A guest's skew may step when its cores are moved: then the bounds of each stretch hold for
    that stretch only, `sound` is the hull of what the stretches prove, widened by the largest step seen, since the next
    one is as likely; and `confident` speaks of the longest stretch.
    """
    usable = [episode for episode in episodes if episode.d.size]
    if not usable:
        raise RecbulcError(
            f"no undisturbed round on the cores {cores[0]} and {cores[1]}", "stop other work on these cores and repeat"
        )
    stretches = split_at_steps(usable)
    centres = tuple(float(np.mean([episode.d.mean() for episode in stretch])) for stretch in stretches)
    proven = [
        intersection(
            bound.widened(granule.uncertainty_ticks + (now_ns - episode.began_ns) * drift_ticks_per_ns)
            for episode in stretch
            for name, bound in episode.bounds.items()
            if name not in UNSOUND_TESTERS
        )
        for stretch in stretches
    ]
    if any(bound.contradictory for bound in proven):
        raise RecbulcError(
            f"the clocks of the cores {cores[0]} and {cores[1]} changed while they were measured",
            "repeat the calibration; if this stays, the machine's clocks cannot order events",
        )
    sound = hull(proven).widened(max(centres) - min(centres))
    longest = max(stretches, key=len)
    d = np.concatenate([episode.d for episode in longest])
    groups = np.repeat(np.arange(len(longest)), [episode.d.size for episode in longest])
    skew = estimate(d, confidence, groups)
    narrow = Interval(floor(skew.centre - skew.half_width), ceil(skew.centre + skew.half_width))
    confident = narrow.widened(granule.uncertainty_ticks).intersection(sound)
    return PairClock(
        cores=cores,
        boottime_ns=now_ns,
        sound=sound,
        # outside of what is proven, the paths are not alike and Scheme 2 tells nothing: fall back to the proof
        confident=sound if confident.contradictory else confident,
        confidence=confidence,
        testers={
            name: hull(intersection(episode.bounds[name] for episode in stretch) for stretch in stretches)
            for name in usable[0].bounds
        },
        d_ticks=skew.centre,
        half_width_ticks=skew.half_width,
        autocorrelation=skew.autocorrelation,
        transfer_ticks=float(np.mean([episode.transfer_ticks for episode in longest])),
        # of the stretch with the longest way: `sound` covers that one too
        round_trip_ticks=max(min(episode.round_trip_ticks for episode in stretch) for stretch in stretches),
        stretches=centres,
        samples=tuple(float(episode.d.mean()) for episode in longest),
        rounds=sum(episode.rounds for episode in episodes),
        dropped=sum(episode.dropped for episode in episodes),
    )


def split_at_steps(episodes: Sequence[Episode]) -> list[list[Episode]]:
    """Cut the sequence where the skew has stepped, so that it stands still within each stretch."""
    means = np.array([episode.d.mean() for episode in episodes])
    moves = np.abs(np.diff(means))
    noise = float(np.median(moves)) if moves.size else 0.0
    step = max(STEP_TICKS, STEP_SPREADS * noise)
    stretches = [[episodes[0]]]
    for episode in episodes[1:]:
        centre = float(np.mean([before.d.mean() for before in stretches[-1]]))
        if abs(episode.d.mean() - centre) > step:
            stretches.append([])
        stretches[-1].append(episode)
    return stretches
