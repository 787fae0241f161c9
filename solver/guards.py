"""Which operations still have an open conflict, and with what: the only places where a search has to choose.

An operation that changes something may be done at once when everything that conflicts with it and could still come
first has been done. For every thread that is a number of operations, known before the search begins.
"""

from __future__ import annotations

import numpy as np

from recbulc.ordering.events import Ints
from recbulc.ordering.sync import ACQUIRE, GOT_IT, RELEASE, SHARE
from recbulc.recorders.events import Kind
from recbulc.schedule import Part
from recbulc.solver.problem import Problem
from recbulc.solver.visits import NONE, Column, Visits, collect, first_after

Needs = tuple[tuple[int, int], ...]  # (thread, how many of its operations must be done)


def needs_of(problem: Problem) -> list[list[Needs]]:
    """For every operation what must be done before it, beyond what the one before it in its thread needed."""
    found = []
    for t, rows in enumerate(problem.bounds):
        steps = np.diff(rows, axis=0, prepend=np.zeros((1, rows.shape[1]), rows.dtype)) > 0
        steps[:, t] = False
        needs: list[list[tuple[int, int]]] = [[] for _ in range(len(rows))]
        for op, u in zip(*(part.tolist() for part in np.nonzero(steps)), strict=True):
            needs[op].append((u, int(rows[op, u])))
        found.append([tuple(need) for need in needs])
    return found


def guards_of(problem: Problem) -> list[list[Needs]]:
    """For every operation with open conflicts, how far the other threads must have come for it to be safe."""
    memory, sync = collect(problem), _sync_visits(problem)
    found: list[list[Needs]] = []
    for t in range(len(problem.lanes)):
        guards: dict[int, list[tuple[int, int]]] = {}
        for u in range(len(problem.lanes)):
            if u == t:
                continue
            far = np.zeros(len(problem.lanes[t]), np.int64)
            for visits in (memory, sync):
                writes, reads = visits.writes, visits.reads
                for mine, theirs in ((writes[t], writes[u]), (writes[t], reads[u]), (reads[t], writes[u])):
                    _push(far, mine, theirs, visits, problem.bounds, t, u)
            open_ones = np.flatnonzero(far > problem.bounds[t][:, u]) if len(far) else far
            for op, count in zip(open_ones.tolist(), far[open_ones].tolist(), strict=True):
                guards.setdefault(op, []).append((u, count))
        found.append([tuple(guards.get(op, ())) for op in range(len(problem.lanes[t]))])
    return found


def _push(far: Ints, mine: Column, theirs: Column, visits: Visits, bounds: list[Ints], t: int, u: int) -> None:
    """Raise `far` to one beyond the last conflicting visit of u that is not after mine."""
    if not len(mine.op) or not len(theirs.op):
        return
    place = theirs.last_before(mine.cell, first_after(bounds, t, mine.op, u), visits.width)
    known = place != NONE
    np.maximum.at(far, mine.op[known], theirs.op[place[known]] + 1)


def _sync_visits(problem: Problem) -> Visits:
    """Calls as visits to made-up cells, three per object: acquisitions; releases and failed tries; signals and sleeps.

    Acquisitions compete with each other. A release ends what a failed try needs. A signal misses who sleeps later.
    """
    cells: dict[tuple[int, int], int] = {}
    reads: list[list[tuple[int, int]]] = []
    writes: list[list[tuple[int, int]]] = []
    for lane in problem.lanes:
        read: list[tuple[int, int]] = []
        write: list[tuple[int, int]] = []
        ops = lane.ops
        places = np.flatnonzero(ops.kind >= Kind.CREATE)
        values, olds = ops.events["value"].tolist(), ops.events["old"].tolist()
        for i in places.tolist():
            kind, part, thing, value = int(ops.kind[i]), int(ops.part[i]), int(ops.object[i]), values[i]
            if part == Part.BLOCKED:
                continue
            takes = kind in ACQUIRE or kind in SHARE or kind in (Kind.SEM_WAIT, Kind.SEM_TRYWAIT)
            if takes and value in GOT_IT:
                write.append((cells.setdefault((thing, 0), len(cells)), i))
            elif takes:
                read.append((cells.setdefault((thing, 1), len(cells)), i))
            elif kind in RELEASE or kind == Kind.SEM_POST:
                write.append((cells.setdefault((thing, 1), len(cells)), i))
            elif kind == Kind.COND_WAIT and part == Part.BEGIN:
                write.append((cells.setdefault((olds[i], 1), len(cells)), i))
                read.append((cells.setdefault((thing, 2), len(cells)), i))
            elif kind == Kind.COND_WAIT and part == Part.END:
                write.append((cells.setdefault((olds[i], 0), len(cells)), i))
            elif kind in (Kind.COND_SIGNAL, Kind.COND_BROADCAST):
                write.append((cells.setdefault((thing, 2), len(cells)), i))
            elif kind == Kind.BARRIER_WAIT and part == Part.BEGIN:
                write.append((cells.setdefault((thing, 0), len(cells)), i))
        reads.append(read)
        writes.append(write)
    width = 2 + max((len(lane) for lane in problem.lanes), default=0)
    return Visits(tuple(_plain(rows, width) for rows in reads), tuple(_plain(rows, width) for rows in writes), width, 1)


def _plain(rows: list[tuple[int, int]], width: int) -> Column:
    table = np.array(rows, np.int64).reshape(-1, 2)
    table = table[np.lexsort((table[:, 1], table[:, 0]))]
    cell, op = table[:, 0].copy(), table[:, 1].copy()
    key = cell * width + op
    return Column(cell, op, np.zeros(len(op), np.int64), key, key, np.arange(len(op)))
