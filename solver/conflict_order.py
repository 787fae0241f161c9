"""From a total order to what matters of it: the order of conflicting operations, reduced, with few context switches.

Operations conflict on a cell (one writes), on a synchronisation object, and on the heap as a whole (malloc and free).
Any order of the rest leads to the same run, so the threads are interleaved anew, staying with one as long as possible.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from recbulc.recorders.events import Kind
from recbulc.schedule import Part
from recbulc.solver.problem import Problem

Where = tuple[int, int]  # thread, operation of its lane
Waits = tuple[tuple[int, int], ...]  # (thread, how many of its listed operations)
HEAP = "heap"
LASTS = (Kind.EXIT, Kind.SIGNAL)
ACCESSES = (Kind.READ, Kind.WRITE, Kind.RMW)


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
    kept = []
    for t, i in order:
        kept.append((t, i))
        if problem.lanes[t].ops.kind[i] in ends:
            return kept
    for t, lane in enumerate(problem.lanes):
        if lane.required < len(lane) and lane.ops.part[lane.required] == Part.BLOCKED:
            kept.append((t, lane.required))
    return kept


def faulted(problem: Problem, t: int, i: int) -> bool:
    """Is it an access that never ended because its thread got a signal there?"""
    ops = problem.lanes[t].ops
    return bool(ops.kind[i] in ACCESSES and not ops.ended[i] and i + 1 < len(ops) and ops.kind[i + 1] == Kind.SIGNAL)


def reduce_order(problem: Problem, order: list[Where]) -> ConflictOrder:
    """The conflict order of a total order, transitively reduced by vector clocks."""
    kept = [(t, i) for t, i in order if problem.lanes[t].ops.kind[i] != Kind.THREAD_START]
    waits = _Reduction(problem, kept).waits
    return _few_switches(problem, kept, waits)


class _Reduction:
    """One walk along the order; a clock says how many listed operations of each thread are known to be over."""

    def __init__(self, problem: Problem, order: list[Where]) -> None:
        self.waits: dict[Where, Waits] = {}
        self._after: list[list[list[int]]] = [[] for _ in problem.lanes]  # the clock after each listed operation
        self._now = [[0] * len(problem.lanes) for _ in problem.lanes]
        self._listed: dict[Where, int] = {}
        self._written: dict[Hashable, Where] = {}
        self._read: dict[Hashable, dict[int, Where]] = {}
        place = {where: number for number, where in enumerate(order)}
        for t, i in order:
            kind = int(problem.lanes[t].ops.kind[i])
            found = self._conflicting(problem, t, i)
            if kind in LASTS or faulted(problem, t, i):
                self.waits[t, i] = self._all_before(t)
            else:
                self.waits[t, i] = self._needed(t, sorted(found, key=place.__getitem__, reverse=True))
            clock = self._now[t]
            self._listed[t, i] = len(self._after[t])
            clock[t] = len(self._after[t]) + 1
            self._after[t].append(list(clock))
            if kind == Kind.CREATE:
                child = int(problem.lanes[t].ops.events["value"][i])
                if child < len(self._now):
                    self._now[child] = [max(pair) for pair in zip(self._now[child], clock, strict=True)]

    def _conflicting(self, problem: Problem, t: int, i: int) -> set[Where]:
        found: set[Where] = set()
        for what, writes in resources(problem, t, i):
            last = self._written.get(what)
            if last is not None and last[0] != t:
                found.add(last)
            if writes:
                found.update(where for u, where in self._read.pop(what, {}).items() if u != t)
                self._written[what] = (t, i)
            else:
                self._read.setdefault(what, {})[t] = (t, i)
        return found

    def _all_before(self, t: int) -> Waits:
        clock, mine = self._now[t], []
        for u, done in enumerate(self._after):
            if u != t and len(done) > clock[u]:
                mine.append((u, len(done)))
                clock[u] = len(done)
        return tuple(mine)

    def _needed(self, t: int, latest_first: list[Where]) -> Waits:
        clock, mine = self._now[t], []
        for u, j in latest_first:
            count = self._listed[u, j] + 1
            if clock[u] < count:
                mine.append((u, count))
                for v, other in enumerate(self._after[u][count - 1]):
                    clock[v] = max(clock[v], other)
        return tuple(mine)


def resources(problem: Problem, t: int, i: int) -> Iterator[tuple[Hashable, bool]]:
    """What an operation touches, and whether it changes it."""
    lane = problem.lanes[t]
    kind, part = int(lane.ops.kind[i]), int(lane.ops.part[i])
    external = (t, i) in problem.external
    for cell, _ in lane.reads[i]:
        yield cell, external
    for cell, _ in lane.writes[i]:
        yield cell, True
    if kind in ACCESSES:
        return
    if kind in (Kind.MALLOC, Kind.FREE):
        yield HEAP, True
    elif kind in (Kind.CREATE, Kind.THREAD_END):
        yield ("thread", t if kind == Kind.THREAD_END else int(lane.ops.events["value"][i])), True
    elif kind == Kind.JOIN and part != Part.BLOCKED:
        yield ("thread", int(lane.ops.events["value"][i])), True
    elif Kind.MUTEX_LOCK <= kind <= Kind.BARRIER_INIT:
        changes = part != Part.BLOCKED
        yield ("object", int(lane.ops.object[i])), changes
        if kind == Kind.COND_WAIT:
            yield ("object", int(lane.ops.events["old"][i])), changes


def _few_switches(problem: Problem, order: list[Where], waits: dict[Where, Waits]) -> ConflictOrder:
    """Stay with a thread while it can go on, then with the one whose next operation came first."""
    lists: list[list[Where]] = [[] for _ in problem.lanes]
    place = {where: number for number, where in enumerate(order)}
    begins: dict[int, tuple[int, int]] = {}  # thread: who created it, and how many operations that is
    for t, i in order:
        lists[t].append((t, i))
        if problem.lanes[t].ops.kind[i] == Kind.CREATE:
            begins.setdefault(int(problem.lanes[t].ops.events["value"][i]), (t, len(lists[t])))
    done = [0] * len(lists)
    result: list[Where] = []
    switches = 0
    thread = order[0][0] if order else 0

    def ready(t: int) -> bool:
        if done[t] >= len(lists[t]):
            return False
        if not done[t] and t in begins and done[begins[t][0]] < begins[t][1]:
            return False
        return all(done[u] >= count for u, count in waits[lists[t][done[t]]])

    while len(result) < len(order):
        if not ready(thread):
            able = [t for t in range(len(lists)) if ready(t)]
            thread = min(able, key=lambda t: place[lists[t][done[t]]])
            switches += 1
        result.append(lists[thread][done[thread]])
        done[thread] += 1
    return ConflictOrder(result, waits, switches)
