"""Have the clocks changed between two calibrations (ReCBuLC §3.2 scenario 2, §6.5)?

Never by comparing widened intervals: by a Welch test on two samples of d. What a guest's cores do on their host is no
change in this sense. Each move takes d to another of the differences between the host's counters, while a changed clock
shifts all of these differences alike. So two sets are compared, of the values that d had between moves: what spans no
more than moves have been seen to span is no change, and a shift that moves may half explain is looked at again, over as
many moves as a few seconds bring.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import comb
from statistics import fmean

from scipy import special

from recbulc.calibration.model import ClockModel
from recbulc.calibration.pair import STEP_TICKS, WANDER_GRANULES, PairClock
from recbulc.calibration.scheme2 import t_quantile, variance_within
from recbulc.errors import InputError
from recbulc.tsc_probe.machine import SUSPEND_NOISE_NS

POWER = 0.99  # with which a shift of `smallest_detectable_ticks` is seen
UNKNOWN_VARIANCE = 1.0  # of one mean of d, in ticks squared, where a single value was measured
UNSEEN_GRANULES = 3  # a guest's moves may span this much, even if fewer or shorter ones were seen
ENOUGH_VALUES = 8  # of d between moves tell what they span
APART_BY_CHANCE = 1e-4  # two sets of values of one clock may lie apart by chance: no further look below this
LOOK_SECONDS = 1.0  # of one look
MOST_LOOKS = 6
LEAST_LOOKS = 2
PATIENCE_SECONDS = 8.0  # of a pair's calibration and all looks at it

Look = Callable[[tuple[int, int], float], Sequence[Sequence[float]]]  # a pair, for so many seconds


@dataclass(frozen=True)
class Sightings:
    """The values of d between moves: each with the number of means it is made of, whose variance is `variance`."""

    values: tuple[tuple[float, int], ...]
    variance: float
    freedom: float

    @property
    def lowest(self) -> tuple[float, int]:
        """The smallest d."""
        return min(self.values)

    @property
    def highest(self) -> tuple[float, int]:
        """The largest d."""
        return max(self.values)

    @property
    def span_ticks(self) -> float:
        """How far moves have been seen to take d."""
        return self.highest[0] - self.lowest[0]


@dataclass(frozen=True)
class PairChange:
    """One pair, then and now.

    `extent_ticks` is the largest difference between a d of then and a d of now, `wander_ticks` the part of
    `allowed_ticks` that moving cores explain. While a comparison is not `settled`, another look may tell more.
    """

    cores: tuple[int, int]
    shift_ticks: float
    extent_ticks: float
    wander_ticks: float
    allowed_ticks: float
    smallest_detectable_ticks: float
    settled: bool

    @property
    def changed(self) -> bool:
        """Do then and now lie further apart than chance and moving cores explain?"""
        return self.extent_ticks > self.allowed_ticks


@dataclass(frozen=True)
class Comparison:
    """All pairs that both models have, and whether the machine slept between them."""

    pairs: tuple[PairChange, ...]
    suspended: bool

    @property
    def changed(self) -> bool:
        """Has any pair changed?"""
        return any(pair.changed for pair in self.pairs)


def compare_models(
    old: ClockModel, new: ClockModel, confidence: float, look: Look | None = None, looks: int = MOST_LOOKS
) -> Comparison:
    """Every pair of `new` against the same pair of `old`; `look` watches a doubtful one, at most `looks` times."""
    changes = []
    for after in new.pairs:
        before = next((pair for pair in old.pairs if set(pair.cores) == set(after.cores)), None)
        if before is None:
            continue
        granule = max(old.granule.ticks, new.granule.ticks) if new.guest else 0
        then = sightings(before, reverse=before.cores != after.cores)
        changes.append(settle(then, after, granule, confidence, look, looks)[0])
    if not changes:
        raise InputError(
            "the two clock models have no pair of cores in common", "calibrate the same cores as the old model"
        )
    return Comparison(tuple(changes), abs(new.suspended_ns - old.suspended_ns) > SUSPEND_NOISE_NS)


def settle(
    then: Sightings,
    after: PairClock,
    moving_granule: int,
    confidence: float,
    look: Look | None = None,
    looks: int = MOST_LOOKS,
) -> tuple[PairChange, PairClock]:
    """Compare, and look again while that is worth it; also returned is `after` with the stretches of these looks."""
    known = max(after.seen) - min(after.seen) if after.seen else 0.0
    after = replace(after, seen=())
    change = compare_sightings(then, sightings(after), after.cores, moving_granule, confidence, known)
    for _ in range(looks if look else 0):
        if change.settled or look is None:
            break
        after = replace(after, stretches=joined(after.stretches, look(after.cores, LOOK_SECONDS)))
        change = compare_sightings(then, sightings(after), after.cores, moving_granule, confidence, known)
    return change, after


def compare_sightings(
    then: Sightings,
    now: Sightings,
    cores: tuple[int, int],
    moving_granule: int,
    confidence: float,
    known_span_ticks: float = 0.0,
) -> PairChange:
    """Welch's t-test of the largest difference between then and now, beyond what moving cores explain.

    Moves explain what they were seen to span: then, now, or otherwise on this machine (`known_span_ticks`), with what
    few moves have not shown yet (for values spread evenly, n of them span (n − 1) / (n + 1) of the whole). On a guest,
    whose `moving_granule` is not 0, that is at least `UNSEEN_GRANULES`.
    """
    up, down = (now.highest, then.lowest), (now.lowest, then.highest)
    upwards = up[0][0] - up[1][0] >= down[1][0] - down[0][0]
    (d_now, n_now), (d_then, n_then) = up if upwards else down
    v1, v2 = then.variance / n_then, now.variance / n_now
    error = (v1 + v2) ** 0.5
    freedom = (v1 + v2) ** 2 / (v1**2 / then.freedom + v2**2 / now.freedom)  # Welch and Satterthwaite
    n = max(len(then.values), len(now.values))
    span = max(then.span_ticks, now.span_ticks, known_span_ticks)
    whole = span * (n + 1) / (n - 1) if n > 1 else span
    wander = max(whole, float(UNSEEN_GRANULES * moving_granule))
    # d of then may be at one end of what moves span, and d of now at the other, towards it
    hidden = max(0.0, (whole if n >= ENOUGH_VALUES else wander) - then.span_ticks)
    quantile = t_quantile(confidence, freedom)
    # the error is itself estimated, and may be larger: for a promise, as large as chance lets it be
    largest_error = error * float(freedom / special.chdtri(freedom, POWER)) ** 0.5
    extent, allowed = abs(d_now - d_then), wander + quantile * error
    near = STEP_TICKS + quantile * error
    overlap = now.lowest[0] <= then.highest[0] + near and then.lowest[0] <= now.highest[0] + near
    if extent > allowed:
        chance = 1.0 if overlap else 2 / comb(len(then.values) + len(now.values), len(now.values))
        settled = chance < APART_BY_CHANCE or extent > max(2 * wander, WANDER_GRANULES * moving_granule)
    else:
        settled = overlap or extent <= wander / 2
    return PairChange(
        cores=cores,
        shift_ticks=fmean(d for d, _ in now.values) - fmean(d for d, _ in then.values),
        extent_ticks=extent,
        wander_ticks=wander,
        allowed_ticks=allowed,
        smallest_detectable_ticks=wander + hidden + (quantile + float(special.stdtrit(freedom, POWER))) * largest_error,
        settled=settled,
    )


def sightings(pair: PairClock, *, reverse: bool = False) -> Sightings:
    """All values of d that a model knows of one pair: those of its calibration, and those seen before on this boot.

    A single mean may be one in which the skew stepped, or which was disturbed; it counts only where there is no other.
    """
    variance, freedom = variance_within(pair.stretches)
    if freedom == 0 or variance == 0:
        variance, freedom = UNKNOWN_VARIANCE, 1
    own = [(fmean(stretch), len(stretch)) for stretch in pair.stretches]
    values = [(d, 1) for d in pair.seen] + ([value for value in own if value[1] > 1] or own)
    sign = -1.0 if reverse else 1.0
    return Sightings(tuple((sign * d, n) for d, n in values), variance, float(freedom))


def joined(stretches: Sequence[Sequence[float]], more: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    """Two watches as one: if d did not step between them, the last stretch goes on."""
    whole = [tuple(stretch) for stretch in stretches]
    for stretch in more:
        if abs(fmean(whole[-1]) - fmean(stretch)) <= STEP_TICKS:
            whole[-1] += tuple(stretch)
        else:
            whole.append(tuple(stretch))
    return tuple(whole)


def looks_within(spent_seconds: float) -> int:
    """How many looks there is time for after a calibration that took so long per pair."""
    return max(LEAST_LOOKS, min(MOST_LOOKS, int((PATIENCE_SECONDS - spent_seconds) / LOOK_SECONDS)))


def smallest_detectable_ticks(model: ClockModel, confidence: float) -> float:
    """The smallest shift that a later calibration like this one would be sure to notice on every pair."""
    return max(change.smallest_detectable_ticks for change in compare_models(model, model, confidence).pairs)
