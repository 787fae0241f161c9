"""Which accesses raced: read off the order that was found, and what could be tried in the other order to make sure.

A deadlock has a cycle of locks, or a signal that came before its waiter. A crash has the read whose value led to the
address, and the write in another thread that came too late or too early. All else has an order of two accesses on
which the failure depends: the last such order is where the run was lost, and replays of the candidates the other way
round find it (recbulc.replay.flip). Without them, unserialisable triples of accesses say which is likeliest.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from recbulc.ordering.ops import NEVER
from recbulc.ordering.sync import Sections, find_sections
from recbulc.recorders.events import POISON, Flag, Kind
from recbulc.recorders.trace import Trace
from recbulc.schedule import Access, Part
from recbulc.solver.conflict_order import ACCESSES, ConflictOrder, Where, faulted
from recbulc.solver.problem import Problem

Place = tuple[int, int]  # thread, position in its list of the schedule
KINDS = {Kind.READ: "read", Kind.WRITE: "write", Kind.RMW: "atomic", Kind.FREE: "write"}
WAITS = (Kind.COND_WAIT, Kind.SEM_WAIT, Kind.BARRIER_WAIT, Kind.JOIN)
SIGNALS = {Kind.COND_WAIT: (Kind.COND_SIGNAL, Kind.COND_BROADCAST), Kind.SEM_WAIT: (Kind.SEM_POST,)}
SENDS = tuple(kind for kinds in SIGNALS.values() for kind in kinds)
FAR_FIELD = 1 << 16  # so far behind a pointer its fields and elements may lie
FAR_BACK = 512  # events of a thread between the read of a pointer and the crash by it
POINTER = 8  # bytes
MOST_LOOKED_AT = 200  # candidates, for a pattern
NEAR = 64  # operations of one thread between two accesses that still belong together


@dataclass(frozen=True)
class Candidate:
    """Two conflicting operations in the order in which they ran; to flip them, `held` waits until `until` is over."""

    racing: tuple[Access, ...]
    held: Place
    until: Place
    torn: bool  # one of them breaks into what the other's thread does in two steps (an unserialisable triple)


class Candidates(Protocol):
    """Made when they are asked for; None for a pair that has no name or cannot be flipped."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: int, /) -> Candidate | None: ...


@dataclass(frozen=True)
class Race:
    """`racing`: what the trace alone shows; `certain`: by structure or by value, so that nothing need be tried.

    `half`: a read that saw what it should not, whose counterpart this run never came to.
    """

    racing: tuple[Access, ...] = ()
    certain: bool = False
    candidates: Candidates = ()
    half: Access | None = None


def find_race(trace: Trace, problem: Problem, found: ConflictOrder) -> Race:
    """What raced in the order that was found."""
    return _Finder(trace, problem, found).find()


class _Finder:
    def __init__(self, trace: Trace, problem: Problem, found: ConflictOrder) -> None:
        self._trace = trace
        self._problem = problem
        self._order = found.order
        self._place = {where: number for number, where in enumerate(found.order)}
        self._lists: list[list[int]] = [[] for _ in problem.lanes]  # operations by position in the schedule
        self._position: dict[Where, int] = {}
        for t, i in found.order:
            self._position[t, i] = len(self._lists[t])
            self._lists[t].append(i)
        self._created = {  # by whom, who: where in the order
            (t, int(problem.lanes[t].ops.events["value"][i])): place
            for place, (t, i) in enumerate(found.order)
            if problem.lanes[t].ops.kind[i] == Kind.CREATE
        }
        self._sections = find_sections([lane.ops for lane in problem.lanes])
        self._spans = [_spans(sections) for sections in self._sections]
        self._by_cell: dict[int, list[tuple[int, Where, bool]]] = {}  # place in the order, who, does it write
        for place, (t, i) in enumerate(found.order):
            for cells, writes in ((self._problem.lanes[t].reads[i], False), (self._problem.lanes[t].writes[i], True)):
                for cell, _ in cells:
                    self._by_cell.setdefault(cell, []).append((place, (t, i), writes))

    def find(self) -> Race:
        how = self._trace.meta.verdict.how
        if how == "deadlock":
            racing = self._lock_cycle() or self._lost_signal()
            if racing:
                return Race(racing, certain=True)
        candidates = _Candidates(self._edges(), self._candidate)
        if how == "signal":
            by_value, only = self._of_fault()
            if len(by_value) > 1:
                return Race(by_value, certain=only, candidates=candidates)
            if by_value:
                return Race(_likeliest(candidates), candidates=candidates, half=by_value[0])
        return Race(_likeliest(candidates), candidates=candidates)

    # ------------------------------------------------------------------------------------------------------ deadlocks

    def _blocked(self) -> dict[int, int]:
        """Which operation each thread was blocked at."""
        found = {}
        for t, ops in enumerate(self._lists):
            if ops and self._problem.lanes[t].ops.part[ops[-1]] == Part.BLOCKED:
                found[t] = ops[-1]
        return found

    def _lock_cycle(self) -> tuple[Access, ...]:
        blocked = self._blocked()
        waits_for = {}
        for t, i in blocked.items():
            ops = self._problem.lanes[t].ops
            kind, thing = int(ops.kind[i]), int(ops.object[i])
            if kind == Kind.JOIN:
                waits_for[t] = int(ops.events["value"][i])
            elif kind not in WAITS:
                holder = self._holder(thing, t)
                if holder is not None:
                    waits_for[t] = holder
        for start in waits_for:
            seen: list[int] = []
            thread = start
            while thread in waits_for and thread not in seen:
                seen.append(thread)
                thread = waits_for[thread]
            if thread in seen:
                cycle = seen[seen.index(thread) :]
                named = [self._access(t, blocked[t]) for t in cycle]
                return tuple(access for access in named if access) if all(named) else ()
        return ()

    def _holder(self, lock: int, waiter: int) -> int | None:
        """Who never gave a lock back; the waiter itself only where nobody else did."""
        own = None
        for t, ops in enumerate(lane.ops for lane in self._problem.lanes):
            sections = self._sections[t]
            for place in np.flatnonzero(sections.release == NEVER).tolist():
                i = int(sections.acquire[place])
                waits = ops.kind[i] == Kind.COND_WAIT
                thing = int(ops.events["old"][i]) if waits else int(ops.object[i])
                if thing == lock and (t, i) in self._position:
                    if t != waiter:
                        return t
                    own = t
        return own

    def _lost_signal(self) -> tuple[Access, ...]:
        """A wait that never ended, and the last signal before it: it came too early."""
        for t, i in self._blocked().items():
            ops = self._problem.lanes[t].ops
            kind = Kind(int(ops.kind[i]))
            if kind not in SIGNALS:
                continue
            begin = i - 1 if kind == Kind.COND_WAIT and i else i
            until = self._place.get((t, begin), len(self._order))
            for u, j in reversed(self._order[:until]):
                other = self._problem.lanes[u].ops
                if u != t and other.kind[j] in SIGNALS[kind] and other.object[j] == ops.object[i]:
                    pair = self._access(u, j), self._access(t, i)
                    if not pair[0] or not pair[1] or self._anyone_asleep(int(ops.object[i]), self._place[u, j]):
                        break  # it woke someone: that none came later has another cause
                    return pair[0], pair[1]
        return ()

    def _anyone_asleep(self, condition: int, until: int) -> bool:
        """Was some thread waiting on a condition at this place of the order?"""
        asleep: set[int] = set()
        for t, i in self._order[:until]:
            ops = self._problem.lanes[t].ops
            if ops.kind[i] == Kind.COND_WAIT and ops.object[i] == condition:
                (asleep.add if ops.part[i] == Part.BEGIN else asleep.discard)(t)
        return bool(asleep)

    # -------------------------------------------------------------------------------------------------------- crashes

    def _of_fault(self) -> tuple[tuple[Access, ...], bool]:
        """The read that led to the faulting address, and the conflicting write: before it, or else after it.

        Where this run came to no such write, the read alone. And whether no other read could have led there.
        """
        fault = next(((t, i) for t, i in reversed(self._order) if faulted(self._problem, t, i)), None)
        if fault is None:
            return (), False
        t, ops = fault[0], self._problem.lanes[fault[0]].ops
        log, last = self._trace.events[t], int(ops.index[fault[1]])
        recent = log[max(last - FAR_BACK, 0) : last]
        shared = {int(ops.index[i]): i for i in self._lists[t] if ops.index[i] < last}
        found: dict[int, tuple[tuple[Access, ...], Where | None]] = {}  # by the address that was read
        for event, row in zip(reversed(range(last - len(recent), last)), recent[::-1], strict=True):
            if int(row["object"]) in found or not _led_to(int(log["object"][last]), row):
                continue
            read = self._named(t, row)
            if read is None or read.object.startswith("⟨stack"):
                continue
            other = self._counterpart(t, shared[event]) if event in shared else None
            named = self._access(*other) if other else None
            if other and named:
                first = self._place.get(other, len(self._order)) < self._place[t, shared[event]]
                found[int(row["object"])] = ((named, read) if first else (read, named)), other
            else:
                found[int(row["object"])] = (read,), None
        ranked = sorted(found.values(), key=lambda entry: -len(entry[0]))  # pairs first, the last read of them
        return (ranked[0][0] if ranked else ()), len({other for _, other in ranked}) == 1

    def _counterpart(self, t: int, i: int) -> Where | None:
        """The other thread's write that the read saw; where it saw none, or what a block begins with, the next one.

        What a thread wrote before it created this one does not race.
        """
        here = self._place[t, i]
        cells = set(self._cells(t, i))
        latest: tuple[int, Where] | None = None
        following: tuple[int, Where] | None = None
        for cell in cells:
            entries = self._by_cell[cell]
            at = bisect_left(entries, (here,))
            before = next((entry for entry in reversed(entries[max(at - FAR_BACK, 0) : at]) if entry[2]), None)
            after = next((entry for entry in entries[at + 1 :] if entry[2] and entry[1][0] != t), None)
            latest = max(filter(None, (latest, before and before[:2])), default=None)
            following = min(filter(None, (following, after and after[:2])), default=None)
        if latest is not None:
            place, (u, j) = latest
            if u != t and self._kind(u, j) != Kind.MALLOC and place > self._created.get((u, t), 0):
                return u, j
        return following[1] if following else None

    # ----------------------------------------------------------------------------------------------------- candidates

    def _edges(self) -> list[tuple[Where, Where]]:
        """Every two conflicting accesses of different threads without another between them, the last first."""
        written: dict[int, Where] = {}
        read: dict[int, list[Where]] = {}
        edges: list[tuple[Where, Where]] = []
        for t, i in self._order:
            lane = self._problem.lanes[t]
            named = self._kind(t, i) != Kind.MALLOC and not faulted(self._problem, t, i)
            before: dict[Where, None] = {}
            for cell, _ in lane.writes[i]:
                before.update(dict.fromkeys(read.pop(cell, ())))
                if cell in written:
                    before[written[cell]] = None
                written[cell] = (t, i)
            for cell, _ in lane.reads[i]:
                if cell in written:
                    before[written[cell]] = None
                read.setdefault(cell, []).append((t, i))
            if named:
                edges.extend((other, (t, i)) for other in before if other[0] != t and self._kind(*other) != Kind.MALLOC)
        edges.reverse()
        return edges

    def _candidate(self, first: Where, second: Where) -> Candidate | None:
        named = self._access(*first), self._access(*second)
        if not named[0] or not named[1] or self._place[first] < self._created.get((first[0], second[0]), 0):
            return None
        held, until = self._ends_of_flip(first, second)
        if (second[0], until) not in self._position:
            return None
        return Candidate(
            (named[0], named[1]),
            (first[0], self._position[first[0], held]),
            (second[0], self._position[second[0], until]),
            self._breaks_in(first, second),
        )

    def _ends_of_flip(self, first: Where, second: Where) -> tuple[int, int]:
        """Where to hold the first thread, and what must be over before it goes on: whole sections of common locks."""
        (t, held), (u, until) = first, second
        theirs = self._sections[u]
        for lock, acquire in self._held(t, held):
            since = self._place.get((t, acquire), 0)
            low, high = np.searchsorted(theirs.lock, [lock, lock + 1]).tolist()
            last = low + int(np.searchsorted(theirs.acquire[low:high], second[1], side="right")) - 1
            if last >= low and self._place.get((u, int(theirs.acquire[last])), -1) > since:
                held, release = acquire, int(theirs.release[last])
                until = max(until, release if release != NEVER else self._lists[u][-1])
        return held, until

    def _held(self, t: int, i: int) -> list[tuple[int, int]]:
        """The locks that a thread holds at an operation, and where it took them; the innermost first."""
        sections = self._sections[t]
        found = []
        for lock, (low, high) in self._spans[t].items():
            place = low + int(np.searchsorted(sections.acquire[low:high], i)) - 1
            if place >= low and sections.release[place] > i:
                found.append((lock, int(sections.acquire[place])))
        return sorted(found, key=lambda entry: -entry[1])

    def _breaks_in(self, first: Where, second: Where) -> bool:
        """Does the later access fall between two of the earlier one's thread that belong together, to its harm?"""
        t = first[0]
        here = self._place[second]
        cells = set(self._cells(*first)) & set(self._cells(*second))
        following = self._lists[t][self._position[first] + 1 : self._position[first] + 1 + NEAR]
        for k in following:
            if self._kind(t, k) in (Kind.CREATE, Kind.JOIN):
                return False
            if cells & set(self._cells(t, k)) and self._place[t, k] > here:
                pattern = tuple(self._writes(*where, cells) for where in (first, second, (t, k)))
                return pattern in {(False, True, False), (False, True, True), (True, True, False), (True, False, True)}
        return False

    # ------------------------------------------------------------------------------------------------------- questions

    def _kind(self, t: int, i: int) -> int:
        return int(self._problem.lanes[t].ops.kind[i])

    def _part(self, t: int, i: int) -> int:
        return int(self._problem.lanes[t].ops.part[i])

    def _cells(self, t: int, i: int) -> list[int]:
        lane = self._problem.lanes[t]
        return [cell for cell, _ in (*lane.reads[i], *lane.writes[i])]

    def _writes(self, t: int, i: int, cells: set[int]) -> bool:
        return any(cell in cells for cell, _ in self._problem.lanes[t].writes[i])

    def _access(self, t: int, i: int) -> Access | None:
        return self._named(t, self._problem.lanes[t].ops.events[i])

    def _named(self, t: int, event: np.void) -> Access | None:
        """For people; None for what is nowhere in the source."""
        site = self._trace.location(event)
        if site is None:
            return None
        kind = Kind(int(event["kind"]))
        memory = kind in ACCESSES
        place = self._trace.object_name(event)
        if memory and event["flags"] & Flag.ATOMIC:
            name = "atomic"
        elif kind in KINDS:
            name = KINDS[kind]
        else:
            name = "wait" if kind in WAITS else "signal" if kind in SENDS else "lock"
        return Access(
            file=site.file,
            line=site.line,
            thread=self._trace.threads[t].name,
            kind=name,
            value=int(event["value"]) if memory and event["after"] else None,
            object=str(place) if place else "",
            function=site.function,
        )


def _spans(sections: Sections) -> dict[int, tuple[int, int]]:
    """Where each lock's sections stand among all."""
    locks, first = np.unique(sections.lock, return_index=True)
    ends = np.append(first[1:], len(sections.lock))[: len(first)]
    return dict(zip(locks.tolist(), zip(first.tolist(), ends.tolist(), strict=True), strict=True))


def _led_to(address: int, row: np.void) -> bool:
    """Can what was read be the pointer by which this address was reached? Small numbers but 0 are no pointers."""
    size, value = int(row["size"]), int(row["value"])
    pointer = size == POINTER and 0 <= address - value < FAR_FIELD and not 0 < value < FAR_FIELD
    return row["kind"] == Kind.READ and (pointer or _is_poison(value, size))


def _is_poison(value: int, size: int) -> bool:
    return value == int.from_bytes(bytes([POISON]) * size, "little")


class _Candidates:
    """Of the edges of an order, the last first."""

    def __init__(self, edges: list[tuple[Where, Where]], make: Callable[[Where, Where], Candidate | None]) -> None:
        self._edges = edges
        self._make = make

    def __len__(self) -> int:
        return len(self._edges)

    def __getitem__(self, place: int) -> Candidate | None:
        return self._make(*self._edges[place])


def first_of(candidates: Candidates, most: int = MOST_LOOKED_AT) -> Iterator[Candidate]:
    """Those of the first few that there are."""
    for place in range(min(most, len(candidates))):
        candidate = candidates[place]
        if candidate:
            yield candidate


def _likeliest(candidates: Candidates) -> tuple[Access, ...]:
    """The last one that breaks into something; else the last."""
    some = list(first_of(candidates))
    torn = [candidate for candidate in some if candidate.torn]
    return (torn or some)[0].racing if some else ()
