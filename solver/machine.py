"""The state of all synchronisation objects while operations are tried in some order, with undo.

One immutable value per object; an operation that is done returns what it replaced. Which waiter a signal wakes is left
open: a signal is a token that any waiter of its time may use, and the oldest usable one is used, because every other
waiter that could use it could use a newer one no less.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from recbulc.ordering.sync import GOT_IT
from recbulc.recorders.events import Kind
from recbulc.schedule import Part
from recbulc.solver.problem import Problem

Key = tuple[str, int]
Undo = list[tuple[Key, Any]]
Step = tuple[Callable[..., bool], Callable[..., Undo], tuple[int, ...]]  # may it, do it, their arguments behind thread

UNKNOWN = 1 << 40  # a semaphore that nobody initialised
EBUSY, EAGAIN, ETIMEDOUT, EDEADLK = 16, 11, 110, 35
LOCKS = {Kind.MUTEX_LOCK, Kind.MUTEX_TRYLOCK, Kind.SPIN_LOCK, Kind.SPIN_TRYLOCK}
UNLOCKS = {Kind.MUTEX_UNLOCK, Kind.SPIN_UNLOCK}
FREE = (-1, 0)  # of a mutex: nobody, depth 0


class Machine:
    """All objects; `steps[t][i]` is None for what does not synchronise."""

    def __init__(self, problem: Problem) -> None:
        self.state: dict[Key, Any] = {}
        self.problem = problem
        self._parties = _parties(problem)
        self._ran = {
            int(lane.ops.object[i])
            for lane in problem.lanes
            for i in lane.ops.of_kind(Kind.ONCE).tolist()
            if lane.ops.part[i] == Part.BEGIN
        }
        self._initialised = {
            int(address) for lane in problem.lanes for address in lane.ops.object[lane.ops.of_kind(Kind.SEM_INIT)]
        }
        self.steps = [[self._step(t, i) for i in range(len(lane))] for t, lane in enumerate(problem.lanes)]

    def undo(self, changes: Undo) -> None:
        """Take back what an operation did."""
        for key, old in reversed(changes):
            if old is None:
                del self.state[key]
            else:
                self.state[key] = old

    def _set(self, key: Key, value: Any) -> tuple[Key, Any]:  # noqa: ANN401 (each sort of object has its own)
        old = self.state.get(key)
        self.state[key] = value
        return key, old

    def _step(self, t: int, i: int) -> Step | None:  # noqa: PLR0912 (a table of kinds)
        ops = self.problem.lanes[t].ops
        kind, part = int(ops.kind[i]), int(ops.part[i])
        if kind < Kind.CREATE or part == Part.BLOCKED or (t, i) in self.problem.relaxed:
            return None
        event = ops.events[i]
        thing, value, old = int(event["object"]), int(event["value"]), int(event["old"])
        if not ops.ended[i] and kind not in (Kind.COND_WAIT, Kind.BARRIER_WAIT, Kind.ONCE):
            value = 0  # in flight: it may have succeeded
        if kind in LOCKS:
            if value in GOT_IT:
                return self._may_lock, self._lock, (thing,)
            return (self._is_locked, self._nothing, (thing,)) if value == EBUSY else None
        if kind in UNLOCKS:
            return (self._always, self._unlock, (thing,)) if value == 0 else None
        if kind in (Kind.RW_RDLOCK, Kind.RW_TRYRDLOCK, Kind.RW_WRLOCK, Kind.RW_TRYWRLOCK):
            shared = kind in (Kind.RW_RDLOCK, Kind.RW_TRYRDLOCK)
            if value in GOT_IT:
                return self._may_rw, self._rw, (thing, shared)
            return (self._rw_busy, self._nothing, (thing, shared)) if value == EBUSY else None
        if kind == Kind.RW_UNLOCK:
            return (self._always, self._rw_unlock, (thing,)) if value == 0 else None
        if kind in (Kind.SEM_WAIT, Kind.SEM_TRYWAIT):
            if value == 0:
                return self._may_take, self._take, (thing,)
            return (self._is_empty, self._nothing, (thing,)) if value == EAGAIN else None
        if kind == Kind.SEM_POST:
            return (self._always, self._post, (thing, 1)) if value == 0 else None
        if kind == Kind.SEM_INIT:
            return self._always, self._init_semaphore, (thing, value)
        if kind == Kind.COND_WAIT and part == Part.BEGIN:
            ends = i + 1 < len(ops) and ops.part[i + 1] == Part.END
            return self._always, self._fall_asleep, (thing, old, not ends and self.problem.recording.deadlocked)
        if kind == Kind.COND_WAIT and part == Part.END:
            return self._may_wake, self._wake, (thing, old, value == 0)
        if kind == Kind.COND_SIGNAL:
            return self._may_signal, self._signal, (thing,)
        if kind == Kind.COND_BROADCAST:
            return self._may_broadcast, self._broadcast, (thing,)
        if kind == Kind.BARRIER_WAIT:
            parties = self._parties[thing]
            return (self._always, self._arrive, (thing, parties)) if part == Part.BEGIN else (
                self._may_leave, self._nothing, (thing, parties)
            )  # fmt: skip
        if kind == Kind.ONCE and part != Part.WHOLE:
            return self._always, self._once, (thing, part)
        if kind == Kind.ONCE and thing in self._ran:
            return self._was_run, self._nothing, (thing,)
        if kind == Kind.MUTEX_INIT:
            return self._always, self._init_mutex, (thing,)
        return None

    def _always(self, *_: int) -> bool:
        return True

    def _nothing(self, *_: int) -> Undo:
        return []

    def _may_lock(self, t: int, lock: int) -> bool:
        return self.state.get(("lock", lock), FREE)[0] in (-1, t)

    def _lock(self, t: int, lock: int) -> Undo:
        return [self._set(("lock", lock), (t, self.state.get(("lock", lock), FREE)[1] + 1))]

    def _is_locked(self, _: int, lock: int) -> bool:
        return bool(self.state.get(("lock", lock), FREE)[0] != -1)

    def _unlock(self, _: int, lock: int) -> Undo:
        owner, depth = self.state.get(("lock", lock), FREE)
        return [self._set(("lock", lock), (owner, depth - 1) if depth > 1 else FREE)]

    def _init_mutex(self, _: int, lock: int) -> Undo:
        return [self._set(("lock", lock), FREE)]

    def _may_rw(self, _: int, lock: int, shared: int) -> bool:
        writer, readers = self.state.get(("rw", lock), (-1, ()))
        return writer == -1 and (bool(shared) or not readers)

    def _rw(self, t: int, lock: int, shared: int) -> Undo:
        _, readers = self.state.get(("rw", lock), (-1, ()))
        return [self._set(("rw", lock), (-1, (*readers, t)) if shared else (t, ()))]

    def _rw_busy(self, t: int, lock: int, shared: int) -> bool:
        return not self._may_rw(t, lock, shared)

    def _rw_unlock(self, t: int, lock: int) -> Undo:
        writer, readers = self.state.get(("rw", lock), (-1, ()))
        if t in readers:
            place = readers.index(t)
            return [self._set(("rw", lock), (writer, readers[:place] + readers[place + 1 :]))]
        return [self._set(("rw", lock), (-1, readers))]

    def count(self, semaphore: int) -> int:
        """The tokens of a semaphore; UNKNOWN, or about that, where nobody set it up."""
        found: int | None = self.state.get(("semaphore", semaphore))
        return found if found is not None else 0 if semaphore in self._initialised else UNKNOWN

    def _may_take(self, _: int, semaphore: int) -> bool:
        return self.count(semaphore) > 0

    def _is_empty(self, _: int, semaphore: int) -> bool:
        count = self.count(semaphore)
        return count == 0 or count > UNKNOWN // 2

    def _take(self, _: int, semaphore: int) -> Undo:
        return self._post(_, semaphore, -1)

    def _post(self, _: int, semaphore: int, change: int) -> Undo:
        return [self._set(("semaphore", semaphore), self.count(semaphore) + change)]

    def _init_semaphore(self, _: int, semaphore: int, value: int) -> Undo:
        return [self._set(("semaphore", semaphore), value)]

    # a condition: how many signals there were, the last broadcast, signals not yet used, and who waits since when
    def _condition(self, condition: int) -> tuple[int, int, tuple[int, ...], tuple[tuple[int, int, bool], ...]]:
        found: tuple[int, int, tuple[int, ...], tuple[tuple[int, int, bool], ...]]
        found = self.state.get(("condition", condition), (0, -1, (), ()))
        return found

    def _fall_asleep(self, t: int, condition: int, mutex: int, forever: int) -> Undo:
        turn, broadcast, tokens, waiters = self._condition(condition)
        changed = self._set(("condition", condition), (turn, broadcast, tokens, (*waiters, (t, turn, bool(forever)))))
        return [changed, self._set(("lock", mutex), FREE)]

    def _may_wake(self, t: int, condition: int, mutex: int, signalled: int) -> bool:
        if self.state.get(("lock", mutex), FREE)[0] != -1:
            return False
        if not signalled:
            return True
        _, broadcast, tokens, waiters = self._condition(condition)
        since = next((turn for u, turn, _ in waiters if u == t), 0)
        return broadcast >= since or any(token >= since for token in tokens)

    def _wake(self, t: int, condition: int, mutex: int, signalled: int) -> Undo:
        turn, broadcast, tokens, waiters = self._condition(condition)
        since = next((turn for u, turn, _ in waiters if u == t), 0)
        if signalled and broadcast < since:
            used = min(token for token in tokens if token >= since)
            tokens = tuple(token for token in tokens if token != used)
        waiters = tuple(waiter for waiter in waiters if waiter[0] != t)
        return [
            self._set(("condition", condition), (turn, broadcast, tokens, waiters)),
            self._set(("lock", mutex), (t, 1)),
        ]

    def _may_signal(self, _: int, condition: int) -> bool:
        _, broadcast, tokens, waiters = self._condition(condition)
        served = sum(since <= broadcast for _, since, _ in waiters)
        stuck = sum(forever for _, _, forever in waiters)
        return not stuck or len(waiters) - stuck - served > len(tokens)

    def _signal(self, _: int, condition: int) -> Undo:
        turn, broadcast, tokens, waiters = self._condition(condition)
        asleep = sum(since > broadcast for _, since, _ in waiters)
        kept = (*tokens, turn)[-asleep:] if asleep else ()  # whoever can use an older one can use a newer one
        return [self._set(("condition", condition), (turn + 1, broadcast, kept, waiters))]

    def _may_broadcast(self, _: int, condition: int) -> bool:
        return not any(forever for _, _, forever in self._condition(condition)[3])

    def _broadcast(self, _: int, condition: int) -> Undo:
        turn, _broadcast, _tokens, waiters = self._condition(condition)
        return [self._set(("condition", condition), (turn + 1, turn, (), waiters))]

    def _arrive(self, t: int, barrier: int, parties: int) -> Undo:
        arrived = self.state.get(("barrier", barrier), 0)
        mine = self._set(("round", barrier * 65536 + t), arrived // parties)
        return [self._set(("barrier", barrier), arrived + 1), mine]

    def _may_leave(self, t: int, barrier: int, parties: int) -> bool:
        turn: int = self.state.get(("round", barrier * 65536 + t), 0)
        return bool(self.state.get(("barrier", barrier), 0) >= (turn + 1) * parties)

    def _once(self, _: int, control: int, part: int) -> Undo:
        return [self._set(("once", control), part)]

    def _was_run(self, _: int, control: int) -> bool:
        return bool(self.state.get(("once", control)) == Part.END)


def _parties(problem: Problem) -> dict[int, int]:
    """How many threads meet at each barrier: as initialised, else all that ever wait there."""
    counts: dict[int, int] = {}
    waiting: dict[int, set[int]] = defaultdict(set)
    for t, lane in enumerate(problem.lanes):
        for i in lane.ops.of_kind(Kind.BARRIER_INIT).tolist():
            counts[int(lane.ops.object[i])] = max(1, int(lane.ops.events["value"][i]))
        for i in lane.ops.of_kind(Kind.BARRIER_WAIT).tolist():
            waiting[int(lane.ops.object[i])].add(t)
    return {barrier: counts.get(barrier, len(threads)) for barrier, threads in waiting.items()}
