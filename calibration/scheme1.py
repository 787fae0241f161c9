"""Scheme 1: bounds of the skew from single rounds (ReCBuLC §3.3.1, Eq. 1-3).

A round proves an order between two clock reads on different cores; the bound it gives holds whatever delayed it, so
no round has to be left out but those of threads that were not on their core.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recbulc.calibration.interval import FAR, Interval
from recbulc.tsc_probe.overflow import difference
from recbulc.tsc_probe.rounds import HandoffRounds, RaceRounds


def race_bounds(rounds: RaceRounds, width_bits: int = 64) -> Interval:
    """Eq. 3: max(TS3 − TS2) < d < min(TS4 − TS1), over the rounds in which the one or the other write came first."""
    zero_first = (rounds.first == 0) & ~rounds.migrated
    one_first = (rounds.first == 1) & ~rounds.migrated
    upper = difference(rounds.after1[zero_first], rounds.before0[zero_first], width_bits)
    lower = difference(rounds.before1[one_first], rounds.after0[one_first], width_bits)
    return _bounds(lower, upper)


def handoff_bounds(rounds: HandoffRounds, width_bits: int = 64) -> Interval:
    """The same inequalities from a ping-pong: sent precedes seen (Eq. 1), and seen precedes back (Eq. 2)."""
    stayed = ~rounds.migrated
    upper = difference(rounds.seen[stayed], rounds.sent[stayed], width_bits)
    lower = difference(rounds.seen[stayed], rounds.back[stayed], width_bits)
    return _bounds(lower, upper)


def shortest_round_trip(rounds: HandoffRounds, width_bits: int = 64) -> int:
    """The smallest two-way transfer, in ticks: what a pair of bounds is to be judged against."""
    stayed = ~rounds.migrated
    trips = difference(rounds.back[stayed], rounds.sent[stayed], width_bits)
    return int(trips.min(initial=FAR))


def _bounds(lower: npt.NDArray[np.int64], upper: npt.NDArray[np.int64]) -> Interval:
    return Interval(int(lower.max(initial=-FAR)), int(upper.min(initial=FAR)))
