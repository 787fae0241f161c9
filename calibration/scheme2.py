"""Scheme 2: a narrow interval of the skew from many rounds (ReCBuLC §3.3.2, Eq. 4-9).

What it covers is E[D] = d + (I12 − I21) / 2: the skew, if the flag's way to either core takes equally long. That the
ways are alike is an assumption this scheme cannot check; Scheme 1 makes none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from recbulc.tsc_probe.overflow import difference
from recbulc.tsc_probe.rounds import FlagRounds

Ticks = npt.NDArray[np.float64]

DISTURBED_SPREADS = 8  # a round this many interquartile ranges from the median met an interrupt, not a slow transfer
LEAST_SAMPLES = 3  # of an interval by Eq. 9
TABLE_N = (20, 50, 100)
TABLE_M = (5, 10, 20)
TABLE_CONFIDENCES = (0.99, 0.999, 0.9999, 0.99999)


@dataclass(frozen=True)
class Spikes:
    """The two humps of TS2 − TS1 (Fig. 7) and the boundary between them.

    `spread` is the sum of both humps' interquartile ranges, `smaller_share` the part of the rounds in the lesser one.
    """

    left: float
    right: float
    spread: float = 0.0
    smaller_share: float = 0.0

    @property
    def boundary(self) -> float:
        """The middle of the two: right of it, core 0 had the flag first."""
        return (self.left + self.right) / 2

    @property
    def apart(self) -> bool:
        """Are there two of them? One hump split in the middle has its halves closer than they are wide."""
        return self.right - self.left > 2 * self.spread and self.smaller_share >= 0.02


@dataclass(frozen=True)
class SkewSamples:
    """Samples of D, each the skew by Eq. 7 over one batch of rounds.

    `transfer_ticks` is the mean I of Eq. 4; `dropped` counts the rounds that were disturbed.
    """

    d: Ticks
    transfer_ticks: float
    dropped: int
    rounds: int


@dataclass(frozen=True)
class Estimate:
    """A t-interval [centre − half_width, centre + half_width] (Eq. 9)."""

    centre: float
    half_width: float
    confidence: float
    samples: int
    effective_samples: float
    autocorrelation: float


def differences(rounds: FlagRounds, width_bits: int = 64) -> npt.NDArray[np.int64]:
    """TS2 − TS1 of every round (Eq. 4)."""
    return difference(rounds.ts1, rounds.ts0, width_bits)


def find_spikes(diffs: npt.NDArray[np.int64]) -> Spikes:
    """Both spikes of Fig. 7, for rounds of which nobody knows who had the flag first.

    The best split of the bulk into two groups (least variance within them, Otsu's criterion), then the medians of the
    two sides; repeated, since the midpoint of the spikes is a better boundary than the first split.
    """
    low, high = np.percentile(diffs, [1, 99])
    bulk = np.sort(diffs[(diffs >= low) & (diffs <= high)]).astype(np.float64)
    if bulk[0] == bulk[-1]:
        return Spikes(float(bulk[0]), float(bulk[0]))
    count = np.arange(1, bulk.size)
    total = np.cumsum(bulk)
    left_mean = total[:-1] / count
    right_mean = (total[-1] - total[:-1]) / (bulk.size - count)
    between = count * (bulk.size - count) * (right_mean - left_mean) ** 2
    between[bulk[1:] == bulk[:-1]] = -1.0  # equal values stay together
    boundary = float(bulk[int(np.argmax(between))])
    for _ in range(8):
        spikes = _spikes_at(bulk, boundary)
        if not bulk[0] <= spikes.boundary < bulk[-1] or spikes.boundary == boundary:
            break
        boundary = spikes.boundary
    return spikes


def _spikes_at(bulk: Ticks, boundary: float) -> Spikes:
    left, right = bulk[bulk <= boundary], bulk[bulk > boundary]
    (l25, l50, l75), (r25, r50, r75) = (np.percentile(side, [25, 50, 75]) for side in (left, right))
    return Spikes(float(l50), float(r50), float(l75 - l25 + r75 - r25), min(left.size, right.size) / bulk.size)


def interleave(parts: Sequence[FlagRounds]) -> FlagRounds:
    """Rounds with different triggers, in turn, so that every batch has its share of each."""

    def mixed(name: str) -> npt.NDArray[Any]:
        return np.stack([getattr(part, name) for part in parts], axis=1).ravel()

    return FlagRounds(mixed("ts0"), mixed("ts1"), mixed("trigger"), mixed("migrated"))


def zero_was_first(rounds: FlagRounds, diffs: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """δ of Eq. 4: known where the workers released the flag in turn, else told by the side of the boundary."""
    if rounds.first_is_known:
        return np.equal(rounds.trigger, 0)
    return diffs > find_spikes(diffs).boundary


def skew_samples(rounds: FlagRounds, batch: int, granule_ticks: int, width_bits: int = 64) -> SkewSamples:
    """Samples of D by Eq. 7: per batch, the mean of the two directions' means.

    Rounds that met an interrupt, a stolen core or a migration stand far outside the spread of their direction; they
    are dropped and counted. A batch left without rounds of one direction gives no sample.
    """
    diffs = differences(rounds, width_bits)
    first = zero_was_first(rounds, diffs)
    kept = ~rounds.migrated
    for side in (first, ~first):
        kept &= ~side | _undisturbed(diffs, side & kept, granule_ticks)
    usable = diffs.size // batch * batch
    shape = (-1, batch)
    values = np.where(kept, diffs, 0)[:usable].astype(np.float64).reshape(shape)
    ones = (kept & first)[:usable].reshape(shape)
    twos = (kept & ~first)[:usable].reshape(shape)
    n1, n2 = ones.sum(axis=1), twos.sum(axis=1)
    full = (n1 > 0) & (n2 > 0)
    mean1 = (values * ones).sum(axis=1)[full] / n1[full]
    mean2 = (values * twos).sum(axis=1)[full] / n2[full]
    transfer = float(np.mean((mean1 - mean2) / 2)) if mean1.size else float("nan")
    return SkewSamples((mean1 + mean2) / 2, transfer, int(np.count_nonzero(~kept)), int(diffs.size))


def _undisturbed(
    diffs: npt.NDArray[np.int64], side: npt.NDArray[np.bool_], granule_ticks: int
) -> npt.NDArray[np.bool_]:
    if not side.any():
        return np.ones(diffs.size, dtype=np.bool_)
    lower, median, upper = np.percentile(diffs[side], [25, 50, 75])
    reach = DISTURBED_SPREADS * (upper - lower + granule_ticks)
    near: npt.NDArray[np.bool_] = np.abs(diffs - median) <= reach
    return near


def estimate(d: Ticks, confidence: float, between: tuple[float, float] | None = None) -> Estimate:
    """Eq. 8-9, for samples that may hang together.

    Student's t assumes independent samples. The effective number of samples is the least of what their lag-1
    autocorrelation leaves, and of what `between` leaves: the variance of the mean, with its degrees of freedom, by the
    spread between groups of samples (those measured by the same threads at the same addresses).
    """
    n = d.size
    if n < LEAST_SAMPLES:
        raise ValueError(f"{n} samples are too few for an interval")
    s = float(np.std(d, ddof=1))
    rho = autocorrelation(d)
    effective = n * (1 - rho) / (1 + rho) if rho > 0 else float(n)
    if between is not None:
        effective = max(effective, between[1] + 1)  # one per group: they were measured independently
    freedom = effective - 1
    if between is not None and s > 0 and between[0] > s**2 / effective:
        effective, freedom = s**2 / between[0], between[1]
    half_width = t_quantile(confidence, freedom) * s / effective**0.5
    return Estimate(float(np.mean(d)), half_width, confidence, n, effective, rho)


def t_quantile(confidence: float, freedom: float) -> float:
    """Of Student's t, both sides."""
    return float(special.stdtrit(max(freedom, 1.0), (1 + confidence) / 2))  # quick to import, as stats is not


def variance_within(groups: Sequence[Sequence[float]]) -> tuple[float, int]:
    """Pooled variance of values about the mean of their group, and its degrees of freedom."""
    freedom = sum(len(group) - 1 for group in groups)
    squares = sum(float(np.var(group)) * len(group) for group in groups)
    return (squares / freedom if freedom else 0.0), freedom


def autocorrelation(d: Ticks) -> float:
    """Lag-1 autocorrelation, corrected for its bias of about −1/n."""
    centred = d - d.mean()
    power = float(np.sum(centred**2))
    if power == 0 or d.size < 3:
        return 0.0
    return min(0.999, float(np.sum(centred[1:] * centred[:-1])) / power + 1 / d.size)


def confidence_table(
    rounds: FlagRounds, granule_ticks: int, width_bits: int = 64
) -> dict[tuple[int, int], dict[float, tuple[float, float]]]:
    """Table 6: Eq. 9 for N rounds a sample, M samples, and each coefficient; plain, as the paper has it."""
    table: dict[tuple[int, int], dict[float, tuple[float, float]]] = {}
    for n in TABLE_N:
        d = skew_samples(rounds, n, granule_ticks, width_bits).d
        for m in TABLE_M:
            if d.size < m:
                continue
            sample = d[:m]
            row = {}
            for confidence in TABLE_CONFIDENCES:
                half = t_quantile(confidence, m - 1) * float(np.std(sample, ddof=1)) / m**0.5
                row[confidence] = (float(sample.mean()) - half, float(sample.mean()) + half)
            table[(n, m)] = row
    return table
