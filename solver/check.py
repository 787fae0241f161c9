"""An independent walk through the trace in the order that was found: every value, every call, program order, stamps.

It shares nothing with the search but the events: memory is bytes here, not cells, and the rules of synchronisation are
written down a second time, plainly. Bytes that only one thread touches, or that nobody writes, are not looked at: no
order of the threads explains or spoils what is in them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Sequence

import numpy as np

from recbulc.ordering.events import Events, Ints, Recording
from recbulc.ordering.ops import NEVER, split
from recbulc.recorders.events import POISON, Flag, Kind
from recbulc.schedule import Part

Step = tuple[int, int, int]  # thread, event, part
EBUSY, EAGAIN, EOWNERDEAD = 16, 11, 130
ENTER = (Kind.MUTEX_LOCK, Kind.MUTEX_TRYLOCK, Kind.SPIN_LOCK, Kind.SPIN_TRYLOCK, Kind.RW_WRLOCK, Kind.RW_TRYWRLOCK)
SHARE = (Kind.RW_RDLOCK, Kind.RW_TRYRDLOCK)
LEAVE = (Kind.MUTEX_UNLOCK, Kind.SPIN_UNLOCK, Kind.RW_UNLOCK)


class Walk:
    """One walk; `complaints` says what does not fit. `external`, `relaxed`: (thread, event) that may be unexplained."""

    def __init__(
        self, recording: Recording, order: Sequence[Step], external: Collection[tuple[int, int]] = (),
        relaxed: Collection[tuple[int, int]] = (),
    ) -> None:  # fmt: skip
        self.recording = recording
        self.order = order
        self.complaints: list[str] = []
        self._external = set(external)
        self._relaxed = set(relaxed)
        self._memory: dict[int, int] = {}
        self._owner: dict[int, list[int]] = {}
        self._readers: dict[int, list[int]] = defaultdict(list)
        self._tokens: dict[int, int] = {}
        self._asleep: dict[int, dict[int, int]] = defaultdict(dict)
        self._lasting: dict[int, set[int]] = defaultdict(set)  # who sleeps for ever
        self._signals: dict[int, list[int]] = defaultdict(list)  # how many each may still wake
        self._arrived: dict[int, int] = defaultdict(int)
        self._round: dict[tuple[int, int], int] = {}
        self._parties: dict[int, int] = {}
        self._once: dict[int, int] = {}
        self._created: set[int] = {0}
        self._ended: set[int] = set()
        self._bytes = shared_bytes(recording)
        self._watched = frozenset(self._bytes)
        self._columns = [
            {name: log[name].tolist() for name in ("kind", "object", "value", "old", "size", "flags", "after")}
            for log in recording.threads
        ]
        self._semaphores = {int(e["object"]) for log in recording.threads for e in log[log["kind"] == Kind.SEM_INIT]}
        self._routines = {t[0] for t in self._once_runs()}
        waiting: dict[int, set[int]] = defaultdict(set)
        for t, log in enumerate(recording.threads):
            for address in log["object"][log["kind"] == Kind.BARRIER_WAIT].tolist():
                waiting[address].add(t)
        self._waiting = waiting

    def run(self) -> list[str]:
        """Walk; everything that does not fit, empty if all does."""
        for step in self.order:
            self._step(*step)
        return self.complaints

    def _once_runs(self) -> set[tuple[int]]:
        return {
            (int(self.recording.threads[t][e]["object"]),)
            for t, e, part in self.order
            if part == Part.BEGIN and self.recording.threads[t][e]["kind"] == Kind.ONCE
        }

    def _complain(self, t: int, e: int, what: str) -> None:
        kind = Kind(self.recording.threads[t][e]["kind"]).name
        self.complaints.append(f"thread {self.recording.name(t)}, event {e} ({kind}): {what}")

    def _step(self, t: int, e: int, part: int) -> None:
        log = self._columns[t]
        kind, thing, value, old, ended = *(log[name][e] for name in ("kind", "object", "value", "old")), log["after"][e]
        if t not in self._created:
            self._complain(t, e, "its thread was not created yet")
            self._created.add(t)
        if kind in (Kind.READ, Kind.WRITE, Kind.RMW):
            if part != Part.BLOCKED:
                self._access(t, e)
        elif kind == Kind.MALLOC:
            self._fill(thing, value, 0 if log["flags"][e] & Flag.ZERO else None)
        elif kind == Kind.FREE:
            self._fill(thing, value, POISON)
        elif kind == Kind.CREATE and not old:
            self._created.add(value)
        elif kind == Kind.THREAD_END:
            self._ended.add(t)
        elif kind == Kind.JOIN and part != Part.BLOCKED and not old and value not in self._ended:
            if len(self.recording.threads[value]) and self.recording.threads[value][-1]["kind"] == Kind.THREAD_END:
                self._complain(t, e, "joined a thread that had not ended")
        elif part != Part.BLOCKED and (t, e) not in self._relaxed:
            self._call(t, e, part, kind, thing, value if ended or part == Part.BEGIN else 0, old)

    def _access(self, t: int, e: int) -> None:
        log = self._columns[t]
        kind, start, value, ended = log["kind"][e], log["object"][e], log["value"][e], log["after"][e]
        seen = log["old"][e] if kind == Kind.RMW else value
        for i in range(log["size"][e]):
            byte = start + i
            if byte not in self._watched:
                continue
            if kind != Kind.WRITE and ended:
                expected = (seen >> (8 * i)) & 0xFF
                now = self._memory.get(byte)
                if now is not None and now != expected and (t, e) not in self._external:
                    self._complain(t, e, f"read {seen:#x}, but byte {i} in memory is {now:#x}")
                self._memory[byte] = expected
            if kind != Kind.READ:
                if ended:
                    self._memory[byte] = (value >> (8 * i)) & 0xFF
                else:
                    self._memory.pop(byte, None)

    def _fill(self, start: int, size: int, value: int | None) -> None:
        for place in range(bisect_left(self._bytes, start), bisect_left(self._bytes, start + size)):
            if value is None:
                self._memory.pop(self._bytes[place], None)
            else:
                self._memory[self._bytes[place]] = value

    def _call(self, t: int, e: int, part: int, kind: int, thing: int, value: int, old: int) -> None:  # noqa: PLR0912, PLR0915
        if kind in ENTER:
            if value in (0, EOWNERDEAD):
                self._enter(t, e, thing)
            elif value == EBUSY and thing not in self._owner and not self._readers[thing]:
                self._complain(t, e, "found a lock held that nobody held")
        elif kind in SHARE:
            if value in (0, EOWNERDEAD):
                if thing in self._owner:
                    self._complain(t, e, "shared a lock that another thread held")
                self._readers[thing].append(t)
            elif value == EBUSY and thing not in self._owner:
                self._complain(t, e, "found a lock held that nobody held")
        elif kind in LEAVE and value == 0:
            self._leave(t, thing)
        elif kind in (Kind.SEM_WAIT, Kind.SEM_TRYWAIT) and thing in self._semaphores:
            if value == 0:
                self._tokens[thing] = self._tokens.get(thing, 0) - 1
                if self._tokens[thing] < 0:
                    self._complain(t, e, "took from an empty semaphore")
            elif value == EAGAIN and self._tokens.get(thing, 0) > 0:
                self._complain(t, e, "found a semaphore empty that was not")
        elif kind == Kind.SEM_POST and value == 0:
            self._tokens[thing] = self._tokens.get(thing, 0) + 1
        elif kind == Kind.SEM_INIT:
            self._tokens[thing] = value
        elif kind == Kind.COND_WAIT and part == Part.BEGIN:
            self._owner.pop(old, None)
            if self.recording.deadlocked and not self._columns[t]["after"][e]:
                self._lasting[thing].add(t)
            else:
                self._asleep[thing][t] = len(self._signals[thing])
        elif kind == Kind.COND_WAIT and part == Part.END:
            since = self._asleep[thing].pop(t, 0)
            if value == 0 and not self._use_signal(thing, since):
                self._complain(t, e, "was woken by no signal")
            self._enter(t, e, old)
        elif kind in (Kind.COND_SIGNAL, Kind.COND_BROADCAST):
            if self._lasting[thing] and (kind == Kind.COND_BROADCAST or not self._somebody_to_wake(thing)):
                self._complain(t, e, "would have woken a thread that slept for ever")
            self._signals[thing].append(1 if kind == Kind.COND_SIGNAL else NEVER)
        elif kind == Kind.BARRIER_INIT:
            self._parties[thing] = max(1, value)
        elif kind == Kind.BARRIER_WAIT:
            parties = self._parties.get(thing, len(self._waiting[thing]))
            if part == Part.BEGIN:
                self._round[t, thing] = self._arrived[thing] // parties
                self._arrived[thing] += 1
            elif self._arrived[thing] < (self._round[t, thing] + 1) * parties:
                self._complain(t, e, "left a barrier before all had come")
        elif kind == Kind.ONCE:
            if part != Part.WHOLE:
                self._once[thing] = part
            elif thing in self._routines and self._once.get(thing) != Part.END:
                self._complain(t, e, "returned before the routine had run")
        elif kind == Kind.MUTEX_INIT:
            self._owner.pop(thing, None)

    def _enter(self, t: int, e: int, lock: int) -> None:
        held = self._owner.get(lock)
        if self._readers[lock] or (held and held[0] != t):
            self._complain(t, e, "took a lock that another thread held")
        self._owner[lock] = [t, held[1] + 1 if held and held[0] == t else 1]

    def _leave(self, t: int, lock: int) -> None:
        if t in self._readers[lock]:
            self._readers[lock].remove(t)
        elif lock in self._owner:
            self._owner[lock][1] -= 1
            if not self._owner[lock][1]:
                del self._owner[lock]

    def _use_signal(self, condition: int, since: int) -> bool:
        signals = self._signals[condition]
        usable = [n for n in range(since, len(signals)) if signals[n]]
        if usable and not any(signals[n] > 1 for n in usable):
            signals[usable[0]] = 0
        return bool(usable)

    def _somebody_to_wake(self, condition: int) -> bool:
        """Does anybody sleep for whom there was no signal yet?"""
        signals = self._signals[condition]
        last = max((n for n, left in enumerate(signals) if left > 1), default=-1)
        asleep = [since for since in self._asleep[condition].values() if since > last]
        served = 0
        for n, left in enumerate(signals):
            served += left == 1 and sum(since <= n for since in asleep) > served
        return len(asleep) > served


def shared_bytes(recording: Recording) -> list[int]:
    """The addresses that two threads touch and one changes, ascending; whatever was freed counts as written."""
    touched, written = [], []
    for log in recording.threads:
        access = log[np.isin(log["kind"], (Kind.READ, Kind.WRITE, Kind.RMW))]
        silent = (access["kind"] == Kind.RMW) & (access["value"] == access["old"]) & (access["after"] != 0)
        touched.append(_spelled_out(access))
        written.append(_spelled_out(access[(access["kind"] != Kind.READ) & ~silent]))
    every = np.unique(np.concatenate(touched)) if touched else np.zeros(0, np.uint64)
    users, writers = np.zeros(len(every), np.int64), np.zeros(len(every), np.int64)
    for mine, changed in zip(touched, written, strict=True):
        users[np.searchsorted(every, mine)] += 1
        writers[np.searchsorted(every, changed)] += 1
    for t, log in enumerate(recording.threads):
        for free in log[log["kind"] == Kind.FREE]:
            first, stop = np.searchsorted(every, [free["object"], free["object"] + free["value"]])
            users[first:stop] += ~np.isin(every[first:stop], touched[t])
            writers[first:stop] += 1
    return [int(byte) for byte in every[(users > 1) & (writers > 0)]]


def _spelled_out(accesses: Events) -> Ints:
    """Every byte that they touch, once."""
    size = accesses["size"].astype(np.int64)
    offset = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    found: Ints = np.unique(np.repeat(accesses["object"], size) + offset.astype(np.uint64))
    return found


def check_order(
    recording: Recording, order: Sequence[Step], external: Collection[tuple[int, int]] = (),
    relaxed: Collection[tuple[int, int]] = (),
) -> list[str]:  # fmt: skip
    """What does not fit in this order; also where it leaves program order."""
    at: dict[int, tuple[int, int]] = {}
    complaints = []
    rank = {Part.BEGIN: 0, Part.WHOLE: 0, Part.END: 1, Part.BLOCKED: 1}
    for t, e, part in order:
        here = (e, rank[Part(part)])
        late = recording.threads[t][e]["kind"] == Kind.ONCE and part == Part.END  # its routine's events came between
        if not late:
            if t in at and here <= at[t]:
                complaints.append(f"thread {recording.name(t)}, event {e}: out of program order")
            at[t] = here
    return complaints + Walk(recording, order, external, relaxed).run()


def check_stamps(recording: Recording, order: Sequence[Step]) -> list[str]:
    """Operations that stand behind one that their stamps say they preceded; `order` holds all that happened."""
    threads = split(recording)
    places = [
        {(int(e), int(p)): i for i, (e, p) in enumerate(zip(ops.index, ops.part, strict=True))} for ops in threads
    ]
    waiting: list[list[int]] = [[] for _ in threads]
    for t, e, part in order:
        waiting[t].append(places[t][e, part])
    following = [0] * len(threads)
    hi = {}
    complaints = []
    columns = [
        (ops.before.tolist(), ops.after.tolist(), ops.events["core"].tolist(), ops.events["core_after"].tolist())
        for ops in threads
    ]
    for t, e, part in order:
        before, core = columns[t][0][places[t][e, part]], columns[t][2][places[t][e, part]]
        for u in range(len(threads)):
            if u == t or following[u] >= len(waiting[u]):
                continue
            other = waiting[u][following[u]]
            after, there = columns[u][1][other], columns[u][3][other]
            if (there, core) not in hi:
                hi[there, core] = 0 if there == core else recording.interval(there, core)[1]
            if after != NEVER and after + hi[there, core] < before:
                complaints.append(f"thread {recording.name(t)}, event {e} stands before what its stamps prove earlier")
        following[t] += 1
    return complaints
