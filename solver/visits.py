"""Who reads and writes which cell, as sorted columns, and the questions that bisection answers about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recbulc.ordering.events import Ints
from recbulc.solver.problem import ANY, Problem

NONE = -1


@dataclass(frozen=True)
class Column:
    """One thread's visits of one sort (reads, or writes), sorted by cell and then by operation."""

    cell: Ints
    op: Ints
    value: Ints  # number of the value; ANY
    key: Ints  # cell and operation in one number
    by_value: Ints  # cell, value and operation in one number, sorted
    order: Ints  # where the entries of by_value stand in the others

    def last_before(self, cell: Ints, op: Ints, width: int) -> Ints:
        """The index of the last visit to each cell before each operation; NONE where there is none."""
        place = np.searchsorted(self.key, cell * width + op, side="left") - 1
        good = (place >= 0) & (self.cell[np.maximum(place, 0)] == cell) if len(self.cell) else np.zeros(len(cell), bool)
        return np.where(good, place, NONE)

    def first_from(self, cell: Ints, op: Ints, width: int) -> Ints:
        """The index of the first visit to each cell at or after each operation; NONE where there is none."""
        place = np.searchsorted(self.key, cell * width + op, side="left")
        inside = np.minimum(place, len(self.cell) - 1)
        good = (place < len(self.cell)) & (self.cell[inside] == cell) if len(self.cell) else np.zeros(len(cell), bool)
        return np.where(good, place, NONE)


@dataclass(frozen=True)
class Visits:
    """Reads and writes of all threads."""

    reads: tuple[Column, ...]
    writes: tuple[Column, ...]
    width: int  # more than the number of operations of any thread
    values: int  # how many different values there are


def collect(problem: Problem) -> Visits:
    """Of a problem. A read that needs an external write writes what it reads."""
    width = 2 + max((len(lane) for lane in problem.lanes), default=0)
    numbers: dict[int, int] = {}
    reads, writes = [], []
    for t, lane in enumerate(problem.lanes):
        read: list[tuple[int, int, int]] = []
        write: list[tuple[int, int, int]] = []
        for i, (gets, puts) in enumerate(zip(lane.reads, lane.writes, strict=True)):
            if not gets and not puts:
                continue
            entries = [(c, i, numbers.setdefault(v, len(numbers))) for c, v in gets]
            if (t, i) in problem.external:
                put = {c for c, _ in puts}
                write.extend(entry for entry in entries if entry[0] not in put)
            else:
                read.extend(entries)
            write.extend((c, i, ANY if v == ANY else numbers.setdefault(v, len(numbers))) for c, v in puts)
        reads.append(read)
        writes.append(write)
    values = len(numbers) + 1
    return Visits(
        tuple(_column(rows, width, values) for rows in reads),
        tuple(_column(rows, width, values) for rows in writes),
        width,
        values,
    )


def _column(rows: list[tuple[int, int, int]], width: int, values: int) -> Column:
    table = np.array(rows, np.int64).reshape(-1, 3)
    table = table[np.lexsort((table[:, 1], table[:, 0]))]
    cell, op, value = table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy()
    by_value = (cell * values + np.where(value == ANY, values - 1, value)) * width + op
    order = np.argsort(by_value, kind="stable")
    return Column(cell, op, value, cell * width + op, by_value[order], order)


def first_after(bounds: list[Ints], t: int, op: Ints, u: int) -> Ints:
    """The first operation of u that is after each operation of t."""
    return np.searchsorted(bounds[u][:, t], op, side="right") if len(bounds[u]) else np.zeros(len(op), np.int64)
