"""Intervals of skew, in ticks.

`interval(x, y) = [lo, hi]` bounds the difference TS_y − TS_x of two readings taken at one instant. lo > hi is a finding
("these bounds contradict each other: the clocks changed"), and is never swapped or clamped.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from math import ceil, floor

import msgspec

FAR = 1 << 62  # an end that nothing has bounded yet


class Interval(msgspec.Struct, frozen=True, array_like=True):
    """[lo, hi], both ends included; in files and JSON it is just that."""

    lo: int
    hi: int

    @property
    def width(self) -> int:
        """hi − lo; negative for a contradiction."""
        return self.hi - self.lo

    @property
    def centre(self) -> float:
        """The middle of both ends."""
        return (self.lo + self.hi) / 2

    @property
    def contradictory(self) -> bool:
        """Is there no skew that fits?"""
        return self.lo > self.hi

    @property
    def bounded(self) -> bool:
        """Has a measurement bounded both ends?"""
        return self.lo > -FAR and self.hi < FAR

    def __contains__(self, ticks: float) -> bool:
        return self.lo <= ticks <= self.hi

    def intersection(self, other: Interval) -> Interval:
        """What both allow; contradictory when they exclude each other."""
        return Interval(max(self.lo, other.lo), min(self.hi, other.hi))

    def widened(self, ticks: float) -> Interval:
        """Looser by `ticks` on either side."""
        return Interval(floor(self.lo - ticks), ceil(self.hi + ticks))

    def plus(self, other: Interval) -> Interval:
        """interval(x, z) from interval(x, y) and interval(y, z)."""
        return Interval(self.lo + other.lo, self.hi + other.hi)

    def reversed(self) -> Interval:
        """interval(y, x) from interval(x, y)."""
        return Interval(-self.hi, -self.lo)


UNBOUNDED = Interval(-FAR, FAR)


def intersection(intervals: Iterable[Interval]) -> Interval:
    """What all allow; UNBOUNDED for none."""
    return reduce(Interval.intersection, intervals, UNBOUNDED)
