"""Have the clocks changed between two calibrations (ReCBuLC §3.2 scenario 2, §6.5)?

Never by comparing widened intervals: by a Welch test on two samples of d. What a guest's cores do on their host is
no change in this sense: a host's counters stand within about a granule of each other, and a guest whose cores move
between them sees its skew step by up to two. The test therefore asks whether the shift exceeds what such moves explain,
and a shift that they may half explain is looked at again, over as many moves as a few seconds bring.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from scipy import stats

from recbulc.calibration.model import ClockModel
from recbulc.calibration.pair import PairClock
from recbulc.calibration.scheme2 import t_quantile, variance_within
from recbulc.errors import InputError
from recbulc.tsc_probe.machine import SUSPEND_NOISE_NS

POWER = 0.99  # with which a shift of `smallest_detectable_ticks` is seen while a guest's cores stay where they are
UNKNOWN_VARIANCE = 1.0  # of one mean of d, in ticks squared, where a single value was measured


@dataclass(frozen=True)
class PairChange:
    """One pair, then and now. `wander_ticks` is the part of `allowed_ticks` that moving cores explain."""

    cores: tuple[int, int]
    shift_ticks: float
    wander_ticks: float
    allowed_ticks: float
    smallest_detectable_ticks: float

    @property
    def changed(self) -> bool:
        """Is the shift beyond what chance and moving cores explain?"""
        return abs(self.shift_ticks) > self.allowed_ticks

    @property
    def doubtful(self) -> bool:
        """Is it of the size of a move, so that a changed clock and moved cores cannot be told apart?"""
        return 0 < self.wander_ticks / 2 < abs(self.shift_ticks) < 2 * self.wander_ticks


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
    old: ClockModel,
    new: ClockModel,
    confidence: float,
    look_again: Callable[[tuple[int, int]], PairClock] | None = None,
) -> Comparison:
    """Every pair of `new` against the same pair of `old`; `look_again` measures a doubtful one once more."""
    changes = []
    for after in new.pairs:
        before = next((pair for pair in old.pairs if set(pair.cores) == set(after.cores)), None)
        if before is None:
            continue
        granule = max(old.granule.ticks, new.granule.ticks) if new.guest else 0
        change = compare_pairs(before, after, granule, confidence)
        if change.doubtful and look_again is not None:
            more = look_again(after.cores)
            after = replace(after, stretches=after.stretches + more.stretches)  # noqa: PLW2901
            change = compare_pairs(before, after, granule, confidence)
        changes.append(change)
    if not changes:
        raise InputError(
            "the two clock models have no pair of cores in common", "calibrate the same cores as the old model"
        )
    return Comparison(tuple(changes), abs(new.suspended_ns - old.suspended_ns) > SUSPEND_NOISE_NS)


def compare_pairs(before: PairClock, after: PairClock, moving_granule: int, confidence: float) -> PairChange:
    """Welch's t-test of the shift, beyond what moving cores explain, at `confidence`.

    d is the mean over the stretches between moves, which count alike however long they were. Moves explain as much as
    was seen during the calibrations, and two granules (one for each core) on a guest, whose `moving_granule` is not 0.
    """
    sign = 1.0 if before.cores == after.cores else -1.0
    (then, v1, f1), (now, v2, f2) = mean_of_stretches(before.stretches), mean_of_stretches(after.stretches)
    error = (v1 + v2) ** 0.5
    freedom = (v1 + v2) ** 2 / (v1**2 / f1 + v2**2 / f2)  # Welch and Satterthwaite
    wander = max(before.wander_ticks, after.wander_ticks, 2.0 * moving_granule)
    quantile = t_quantile(confidence, freedom)
    # the error is itself estimated, and may be larger: for a promise, as large as chance lets it be
    largest_error = error * float(freedom / stats.chi2.ppf(1 - POWER, freedom)) ** 0.5
    return PairChange(
        cores=after.cores,
        shift_ticks=now - sign * then,
        wander_ticks=wander,
        allowed_ticks=wander + quantile * error,
        smallest_detectable_ticks=wander + (quantile + float(stats.t.ppf(POWER, freedom))) * largest_error,
    )


def mean_of_stretches(stretches: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """The mean of the stretches' means, its variance, and the degrees of freedom of that."""
    variance, freedom = variance_within(stretches)
    if freedom == 0 or variance == 0:
        variance, freedom = UNKNOWN_VARIANCE, 1
    of_mean = variance * sum(1 / len(stretch) for stretch in stretches) / len(stretches) ** 2
    return fmean(fmean(stretch) for stretch in stretches), of_mean, float(freedom)


def smallest_detectable_ticks(model: ClockModel, confidence: float) -> float:
    """The smallest shift that a later calibration like this one would be sure to notice on every pair."""
    return max(change.smallest_detectable_ticks for change in compare_models(model, model, confidence).pairs)
