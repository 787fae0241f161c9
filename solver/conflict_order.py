"""From a total order to what matters of it: the order of conflicting operations, reduced, with few context switches.

Operations conflict on a cell (one writes), on a synchronisation object, and on the heap as a whole (malloc and free).
Any order of the rest leads to the same run, so the threads are interleaved anew, staying with one as long as possible.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from recbulc.recorders.events import Kind
from recbulc.schedule import Part
from recbulc.solver.problem import Lane, Problem

Where = tuple[int, int]  # thread, operation of its lane
Waits = tuple[tuple[int, int], ...]  # (thread, how many of its listed operations)
Resources = tuple[tuple[Hashable, bool], ...]  # what is touched, and is it changed?
HEAP = "heap"
LASTS = (Kind.EXIT, Kind.SIGNAL)
ACCESSES = (Kind.READ, Kind.WRITE, Kind.RMW)
ACCESS_NUMBERS, FAULT = frozenset(map(int, ACCESSES)), int(Kind.SIGNAL)  # NumPy compares numbers faster than enums


@dataclass(frozen=True)
class ConflictOrder:
    """`order`: the operations up to the failure, interleaved with few switches; starts of threads are left out.

    `waits`: for each what it needs beyond what follows from others.
    """

    order: list[Where]
    waits: dict[Where, Waits]
    switches: int


def up_to_failure(problem: Problem, order: list[Where], *, signalled: bool) -> list[Where]:
    """What happened before the process ended, with the calls that never returned where it did not end by itself."""
    ends = (Kind.SIGNAL,) if signalled else LASTS
    last = [set(lane.ops.of_kind(*ends).tolist()) for lane in problem.lanes]
    for place, (t, i) in enumerate(order):
        if i in last[t]:
            return order[: place + 1]
    kept = list(order)
    for t, lane in enumerate(problem.lanes):
        if lane.required < len(lane) and lane.ops.part[lane.required] == Part.BLOCKED:
            kept.append((t, lane.required))
    return kept


def faulted(problem: Problem, t: int, i: int) -> bool:
    """Is it an access that never ended because its thread got a signal there?"""
    ops = problem.lanes[t].ops
    if ops.ended[i] or i + 1 >= len(ops):
        return False
    return int(ops.kind[i]) in ACCESS_NUMBERS and int(ops.kind[i + 1]) == FAULT


def reduce_order(problem: Problem, order: list[Where]) -> ConflictOrder:
    """The conflict order of a total order, transitively reduced by vector clocks."""
    starts = [set(lane.ops.of_kind(Kind.THREAD_START).tolist()) for lane in problem.lanes]
    kept = [where for where in order if where[1] not in starts[where[0]]]
    return _few_switches(problem, kept, _Reduction(problem, kept).waits)


class _Reduction:
    """One walk along the order; a clock says how many listed operations of each thread are known to be over.

    Places in the order stand for operations: one number each, the later the larger.
    """

    def __init__(self, problem: Problem, order: list[Where]) -> None:
        self.waits: dict[Where, Waits] = {}
        lanes = problem.lanes
        self._thread = [t for t, _ in order]
        self._listed = [0] * len(order)
        self._after: list[list[list[int]]] = [[] for _ in lanes]  # the clock after each listed operation
        self._now = [[0] * len(lanes) for _ in lanes]
        self._written: dict[Hashable, int] = {}
        self._read: dict[Hashable, dict[int, int]] = {}
        calls = [_calls(problem, t) for t in range(len(lanes))]
        finals = [_finals(problem, t) for t in range(len(lanes))]
        children = [_children(problem, t) for t in range(len(lanes))]
        for place, where in enumerate(order):
            t, i = where
            found = self._conflicting(lanes[t], where, place, calls[t].get(i, ()), where in problem.external)
            if i in finals[t]:
                self.waits[where] = self._all_before(t)
            else:
                self.waits[where] = self._needed(t, found) if found else ()
            clock, after = self._now[t], self._after[t]
            self._listed[place] = len(after)
            clock[t] = len(after) + 1
            after.append(clock.copy())
            if i in children[t]:
                child = children[t][i]
                self._now[child] = [max(pair) for pair in zip(self._now[child], clock, strict=True)]

    def _conflicting(self, lane: Lane, where: Where, place: int, calls: Resources, external: bool) -> list[int]:
        """The last operations of other threads that it conflicts with, by place; and it is the last of its own now."""
        t, i = where
        found: list[int] = []
        threads, written, read = self._thread, self._written, self._read
        for cell, _ in lane.reads[i]:
            last = written.get(cell)
            if last is not None and threads[last] != t:
                found.append(last)
            if external:
                self._change(cell, t, place, found)
            elif cell in read:
                read[cell][t] = place
            else:
                read[cell] = {t: place}
        for cell, _ in lane.writes[i]:
            self._change(cell, t, place, found)
        for what, writes in calls:
            if writes:
                self._change(what, t, place, found)
            else:
                last = written.get(what)
                if last is not None and threads[last] != t:
                    found.append(last)
                read.setdefault(what, {})[t] = place
        return found

    def _change(self, what: Hashable, t: int, place: int, found: list[int]) -> None:
        last = self._written.get(what)
        if last is not None and self._thread[last] != t:
            found.append(last)
        readers = self._read.pop(what, None)
        if readers:
            found.extend(other for u, other in readers.items() if u != t)
        self._written[what] = place

    def _all_before(self, t: int) -> Waits:
        clock, mine = self._now[t], []
        for u, done in enumerate(self._after):
            if u != t and len(done) > clock[u]:
                mine.append((u, len(done)))
                clock[u] = len(done)
        return tuple(mine)

    def _needed(self, t: int, found: list[int]) -> Waits:
        """Of these, the latest first, what does not follow from the others and from what was known."""
        clock, mine = self._now[t], []
        for place in sorted(found, reverse=True) if len(found) > 1 else found:
            u = self._thread[place]
            count = self._listed[place] + 1
            if clock[u] < count:
                mine.append((u, count))
                for v, other in enumerate(self._after[u][count - 1]):
                    if other > clock[v]:  # noqa: PLR1730 (max() is slower)
                        clock[v] = other
        return tuple(mine)


def _calls(problem: Problem, t: int) -> dict[int, Resources]:
    """What the calls of a thread touch beside cells, and whether they change it."""
    ops = problem.lanes[t].ops
    places = np.flatnonzero(~np.isin(ops.kind, ACCESSES))
    events = ops.events[places]
    columns = (ops.kind[places], ops.part[places], events["object"], events["value"], events["old"])
    found = {}
    for i, kind, part, thing, value, old in zip(places.tolist(), *(c.tolist() for c in columns), strict=True):
        touched = _resources(t, kind, part, thing, value, old)
        if touched:
            found[i] = touched
    return found


def _resources(t: int, kind: int, part: int, thing: int, value: int, old: int) -> Resources:
    if kind in (Kind.MALLOC, Kind.FREE):
        return ((HEAP, True),)
    if kind in (Kind.CREATE, Kind.THREAD_END):
        return ((("thread", t if kind == Kind.THREAD_END else value), True),)
    if kind == Kind.JOIN and part != Part.BLOCKED:
        return ((("thread", value), True),)
    if Kind.MUTEX_LOCK <= kind <= Kind.BARRIER_INIT:
        changes = part != Part.BLOCKED
        own = (("object", thing), changes)
        return (own, (("object", old), changes)) if kind == Kind.COND_WAIT else (own,)
    return ()


def _finals(problem: Problem, t: int) -> set[int]:
    """The operations that come after everything before them: what ended the process, or its thread by a fault."""
    ops = problem.lanes[t].ops
    ends = set(ops.of_kind(*LASTS).tolist())
    return ends | {i for i in np.flatnonzero(~ops.ended).tolist() if faulted(problem, t, i)}


def _children(problem: Problem, t: int) -> dict[int, int]:
    """Which operation of a thread created which."""
    ops = problem.lanes[t].ops
    places = ops.of_kind(Kind.CREATE)
    pairs = zip(places.tolist(), ops.events["value"][places].tolist(), strict=True)
    return {i: child for i, child in pairs if child < len(problem.lanes)}


def _few_switches(problem: Problem, order: list[Where], waits: dict[Where, Waits]) -> ConflictOrder:
    """Stay with a thread while it can go on, then with the one whose next operation came first."""
    lists: list[list[Where]] = [[] for _ in problem.lanes]
    places: list[list[int]] = [[] for _ in problem.lanes]
    begins: dict[int, tuple[int, int]] = {}  # thread: who created it, and how many operations that is
    children = [_children(problem, t) for t in range(len(problem.lanes))]
    for place, (t, i) in enumerate(order):
        lists[t].append((t, i))
        places[t].append(place)
        if i in children[t]:
            begins.setdefault(children[t][i], (t, len(lists[t])))
    needs = [[waits[where] for where in mine] for mine in lists]
    done = [0] * len(lists)
    result: list[Where] = []
    switches = 0
    thread = order[0][0] if order else 0

    def ready(t: int) -> bool:
        if done[t] >= len(lists[t]):
            return False
        if not done[t] and t in begins and done[begins[t][0]] < begins[t][1]:
            return False
        return all(done[u] >= count for u, count in needs[t][done[t]])

    while len(result) < len(order):
        if not ready(thread):
            able = [t for t in range(len(lists)) if ready(t)]
            thread = min(able, key=lambda t: places[t][done[t]])
            switches += 1
        first = place = done[thread]
        mine, end = needs[thread], len(needs[thread])
        place += 1
        while place < end and not mine[place]:
            place += 1
        result.extend(lists[thread][first:place])
        done[thread] = place
    return ConflictOrder(result, waits, switches)
