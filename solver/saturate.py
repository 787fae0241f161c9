"""Which write each read saw, as far as it follows; and what order follows from that, to a fixpoint.

ReCBuLC §4.2 and Fig. 8: order known from stamps removes candidates before anything is encoded. A read's candidates are
the writes that are neither after it nor overwritten before it and have its value. Where one is left (w), w is before
the read, every other write to the cell that is before the read is before w, and every one that is after w is after the
read. Those facts order more pairs, which removes more candidates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recbulc.ordering.closure import close
from recbulc.ordering.events import Ints
from recbulc.ordering.sync import find_sections, initialised_again, order_sections
from recbulc.solver.problem import Problem
from recbulc.solver.visits import NONE, Visits, collect, first_after

Bools = NDArray[np.bool_]
MOST_ROUNDS = 200
WORTH_A_ROUND = 10_000  # a round that raises less than one entry for so many operations leaves the rest to the search


@dataclass(frozen=True)
class Candidates:
    """For every read of one thread (as in visits.reads): how many writes it may have seen, and which if few."""

    count: Ints  # by value, stamps and known order; initial contents count as one
    before_values: Ints  # the same without looking at values
    initial: Bools  # may be the initial contents
    thread: Ints  # of all candidates, if they are all in one; NONE
    first: Ints  # operation of that thread's first candidate
    last: Ints  # and of its last


@dataclass(frozen=True)
class Saturated:
    """What came of it: choices of a write for a read, all there are and those left; and reads with several left."""

    rounds: int
    choices: int
    candidates: int
    open_reads: int


def saturate(problem: Problem, expired: Callable[[], bool] = lambda: False) -> Saturated:
    """Raise problem.bounds to the fixpoint, or near it; a Contradiction means that no order explains the recording."""
    threads = [lane.ops for lane in problem.lanes]
    nodes = [np.arange(len(lane)) for lane in problem.lanes]
    sections = find_sections(threads)
    last_if_open = not initialised_again(threads)
    bounds = problem.bounds
    close(bounds, nodes)
    visits = collect(problem)
    turn = 0
    while turn < MOST_ROUNDS:
        turn += 1
        found = [find_candidates(visits, bounds, t) for t in range(len(threads))]
        if _mark_external(problem, visits, found):
            visits = collect(problem)
            continue
        raised = _apply(visits, bounds, found)
        raised += order_sections(bounds, nodes, sections, last_if_open=last_if_open)
        if not raised:
            break
        close(bounds, nodes)
        if expired() or raised < sum(len(rows) for rows in bounds) // WORTH_A_ROUND:
            break
    counts = [part.count for part in found]
    candidates, open_reads = int(sum(part.sum() for part in counts)), int(sum((part > 1).sum() for part in counts))
    return Saturated(turn, _choices(visits), candidates, open_reads)


def _choices(visits: Visits) -> int:
    """Of a write, or the initial contents, to the same cell, for every read: as if nothing were known."""
    cells = 1 + max((int(part.cell[-1]) for part in (*visits.reads, *visits.writes) if len(part.cell)), default=-1)
    writes = np.ones(cells, np.int64)
    for part in visits.writes:
        writes += np.bincount(part.cell, minlength=cells)
    return int(sum(writes[part.cell].sum() for part in visits.reads))


def find_candidates(visits: Visits, bounds: list[Ints], t: int) -> Candidates:
    """What each read of thread t may have seen."""
    reads, width, values = visits.reads[t], visits.width, visits.values
    n = len(reads.op)
    count, plain = np.zeros(n, np.int64), np.zeros(n, np.int64)
    thread, first, last = np.full(n, NONE), np.full(n, NONE), np.full(n, NONE)
    threads = range(len(bounds))
    certain = []  # per thread, the last write that is certainly before the read
    for u in threads:
        limit = reads.op if u == t else bounds[t][reads.op, u]
        certain.append(visits.writes[u].last_before(reads.cell, limit, width))
    overwritten = [_overwritten(visits, bounds, certain, u) for u in threads]
    initial = np.all([place == NONE for place in certain], axis=0) if n else np.zeros(0, bool)
    for u in threads:
        column = visits.writes[u]
        if not len(column.op):
            continue
        known = certain[u] != NONE
        low = np.where(known, column.op[np.maximum(certain[u], 0)] + overwritten[u], 0)
        high = reads.op if u == t else first_after(bounds, t, reads.op, u)
        base = reads.cell * width
        plain += np.maximum(np.searchsorted(column.key, base + high) - np.searchsorted(column.key, base + low), 0)
        for value in (reads.value, np.full(n, values - 1)):  # its own value, or one that nobody recorded
            base = (reads.cell * values + value) * width
            left, right = np.searchsorted(column.by_value, base + low), np.searchsorted(column.by_value, base + high)
            some = right > left
            count += np.where(some, right - left, 0)
            top = len(column.op) - 1
            start = column.op[column.order[np.minimum(left, top)]]
            stop = column.op[column.order[np.clip(right - 1, 0, top)]]
            alone = (thread == NONE) | (thread == u)
            first = np.where(some, np.where(thread == u, np.minimum(first, start), start), first)
            last = np.where(some, np.where(thread == u, np.maximum(last, stop), stop), last)
            thread = np.where(some, np.where(alone, u, len(bounds)), thread)
    thread = np.where((thread == len(bounds)) | initial, NONE, thread)
    return Candidates(count + initial, plain + initial, initial, thread, first, last)


def _overwritten(visits: Visits, bounds: list[Ints], certain: list[Ints], u: int) -> Bools:
    """Is the last certain write of u before another thread's last certain write?"""
    column = visits.writes[u]
    gone = np.zeros(len(certain[u]), bool)
    if not len(column.op):
        return gone
    mine = column.op[np.maximum(certain[u], 0)]
    for v, other in enumerate(visits.writes):
        if v == u or not len(other.op):
            continue
        later = other.op[np.maximum(certain[v], 0)]
        gone |= (certain[v] != NONE) & (certain[u] != NONE) & (bounds[v][later, u] > mine)
    return gone


def _mark_external(problem: Problem, visits: Visits, found: list[Candidates]) -> bool:
    """Reads that nothing explains: the earliest for each cell and value; the others may have seen the same."""
    earliest: dict[tuple[int, int], tuple[int, int, int]] = {}
    for t, part in enumerate(found):
        reads = visits.reads[t]
        for place in np.flatnonzero(part.count == 0).tolist():
            op = int(reads.op[place])
            seen = (problem.lanes[t].key[op], t, op)
            what = (int(reads.cell[place]), int(reads.value[place]))
            if what not in earliest or seen < earliest[what]:
                earliest[what] = seen
    problem.external.update(dict.fromkeys((t, op) for _, t, op in earliest.values()))
    return bool(earliest)


def _apply(visits: Visits, bounds: list[Ints], found: list[Candidates]) -> int:
    """Raise rows by what the candidates imply; how many entries that raised."""
    raised = 0
    known = [rows.copy() for rows in bounds]  # sorted by column, which bounds are again after closing only
    for t, part in enumerate(found):
        reads = visits.reads[t]
        for u in range(len(bounds)):
            of_u = np.flatnonzero(part.thread == u)
            if len(of_u):
                raised += _from_one_thread(visits, known, bounds, part, t, u, of_u)
        only_initial = np.flatnonzero(part.initial & (part.count == 1))
        for x in range(len(bounds)):
            if x != t and len(only_initial):
                cell, op = reads.cell[only_initial], reads.op[only_initial]
                raised += _before_first_write(visits, bounds, x, t, cell, op, np.zeros(len(op), np.int64))
    return raised


def _from_one_thread(
    visits: Visits, known: list[Ints], bounds: list[Ints], part: Candidates, t: int, u: int, where: Ints
) -> int:
    """All candidates of these reads of t are in u."""
    reads, width = visits.reads[t], visits.width
    cell, op, first, last = reads.cell[where], reads.op[where], part.first[where], part.last[where]
    raised = 0
    if u != t:
        raised += _raise(bounds, t, op, u, first + 1)
        raised += _before_first_write(visits, bounds, u, t, cell, op, last + 1)
    unique = part.count[where] == 1
    cell, op, first = cell[unique], op[unique], first[unique]
    for x in range(len(bounds)):
        if x == u:
            continue
        limit = op if x == t else known[t][op, x]
        place = visits.writes[x].last_before(cell, limit, width)
        some = place != NONE
        if some.any():
            raised += _raise(bounds, u, first[some], x, visits.writes[x].op[place[some]] + 1)
        if x != t:
            raised += _before_first_write(visits, bounds, x, t, cell, op, first_after(known, u, first, x))
    return raised


def _before_first_write(visits: Visits, bounds: list[Ints], x: int, t: int, cell: Ints, op: Ints, start: Ints) -> int:
    """Each read `op` of t is before the first write of x to its cell from `start` on."""
    place = visits.writes[x].first_from(cell, start, visits.width)
    known = place != NONE
    return _raise(bounds, x, visits.writes[x].op[place[known]], t, op[known] + 1) if known.any() else 0


def _raise(bounds: list[Ints], t: int, ops: Ints, u: int, counts: Ints) -> int:
    less = bounds[t][ops, u] < counts
    np.maximum.at(bounds[t], (ops[less], u), counts[less])
    return int(np.count_nonzero(less))
