"""How many conflicting pairs are ordered, counted without looking at pairs.

A pair of accesses of two threads to overlapping bytes conflicts if one writes. For one access, the accesses of another
thread to the same cell that are before it are the first ones, those after it the last ones, and the open ones lie
between: two bisections. A pair that meets in several cells is counted in the first of them, where one of both begins.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recbulc.ordering.cells import Cells, incidences
from recbulc.ordering.events import Ints

MOST_LISTED = 2_000_000  # open pairs looked at one by one, to name their sites


@dataclass(frozen=True)
class Visits:
    """One thread's visits to cells, sorted by cell and operation."""

    cell: Ints
    op: Ints
    begins: NDArray[np.bool_]  # is it the first cell of its access?
    writes: NDArray[np.bool_]

    def pick(self, where: NDArray[np.bool_]) -> Visits:
        """Some of them."""
        return Visits(self.cell[where], self.op[where], self.begins[where], self.writes[where])


@dataclass(frozen=True)
class Conflicts:
    """Numbers of conflicting pairs, and the open ones by (thread, operation) where they were listed."""

    pairs: int
    ordered: int
    open_ops: Counter[tuple[int, int]]  # (site, site), smaller first

    @property
    def unordered(self) -> int:
        """What is left open."""
        return self.pairs - self.ordered


def visits_of(cells: Cells) -> list[Visits]:
    """The visits of all threads."""
    found = []
    for touches in cells.touches:
        row, cell = incidences(touches)
        op = touches.op[row]
        order = np.lexsort((op, cell))
        row, cell, op = row[order], cell[order], op[order]
        found.append(Visits(cell, op, cell == touches.first[row], touches.writes[row]))
    return found


def count_conflicts(cells: Cells, bounds: list[Ints], sites: list[Ints]) -> Conflicts:
    """Count them; bounds[t][i, u] is how many operations of u are before operation i of t, sites[t][i] its site."""
    visits = visits_of(cells)
    pairs = ordered = 0
    listed: Counter[tuple[int, int]] = Counter()
    room = MOST_LISTED
    for t, mine in enumerate(visits):
        for u in range(t):
            theirs = visits[u]
            before = bounds[t][:, u]
            first_after = np.searchsorted(bounds[u][:, t], np.arange(len(bounds[t])), side="right")
            for ours, others, sign in _combinations(mine, theirs):
                low, early, late, high = _places(ours, others, before, first_after)
                pairs += sign * int((high - low).sum())
                ordered += sign * int((high - low - (late - early)).sum())
                if room > 0 and sign > 0:
                    some = _open_sites(ours, others, early, late, sites[t], sites[u], room)
                    room -= some.total()
                    listed += some
    return Conflicts(pairs, ordered, listed)


def _combinations(mine: Visits, theirs: Visits) -> list[tuple[Visits, Visits, int]]:
    """Which visits meet which: those that write all, the others those that write; minus what was counted before."""
    return [
        (ours, others, sign)
        for ours, others in ((mine.pick(mine.writes), theirs), (mine.pick(~mine.writes), theirs.pick(theirs.writes)))
        for ours, others, sign in ((ours, others, 1), (ours.pick(~ours.begins), others.pick(~others.begins), -1))
        if len(ours.cell) and len(others.cell)
    ]


def _places(ours: Visits, others: Visits, before: Ints, first_after: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """For each of ours, where among the others its cell begins, the open ones begin and end, and the cell ends."""
    width = 1 + max(int(others.op.max()), len(first_after) and int(first_after.max()))
    keys = others.cell * (width + 1) + others.op
    base = ours.cell * (width + 1)
    low = np.searchsorted(keys, base)
    high = np.searchsorted(keys, base + width)
    early = np.searchsorted(keys, base + np.minimum(before[ours.op], width))
    late = np.searchsorted(keys, base + np.minimum(first_after[ours.op], width))
    return low, early, np.maximum(late, early), high


def _open_sites(
    ours: Visits, others: Visits, early: Ints, late: Ints, our_sites: Ints, other_sites: Ints, room: int
) -> Counter[tuple[int, int]]:
    counts = late - early
    within = np.cumsum(counts) <= room
    counts = np.where(within, counts, 0)
    row = np.repeat(np.arange(len(counts)), counts)
    other = early[row] + np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    new = ours.begins[row] | others.begins[other]
    row, other = row[new], other[new]
    mine, theirs = our_sites[ours.op[row]], other_sites[others.op[other]]
    numbers = np.unique(np.concatenate([np.unique(mine), np.unique(theirs)]))  # few: they are counted in a square
    low, high = np.searchsorted(numbers, np.minimum(mine, theirs)), np.searchsorted(numbers, np.maximum(mine, theirs))
    kinds, times = _count(low * len(numbers) + high, len(numbers) ** 2)
    first, second = numbers[kinds // max(len(numbers), 1)], numbers[kinds % max(len(numbers), 1)]
    return Counter(
        {(int(a), int(b)): int(n) for a, b, n in zip(first, second, times, strict=True)}  # smaller site first
    )


def _count(keys: Ints, most: int) -> tuple[Ints, Ints]:
    """Which keys there are, and how often."""
    if most > MOST_LISTED:
        kinds, times = np.unique(keys, return_counts=True)
        return kinds, times
    every = np.bincount(keys, minlength=most)
    kinds = np.flatnonzero(every)
    return kinds, every[kinds]
