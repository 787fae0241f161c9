"""Order from synchronisation: creation and joining, barriers, once, and the sections of locks.

Two sections of one lock exclude each other, so that one pair of their points that is ordered orders them wholly: if the
acquisition of the one is before the release of the other, its release is before the other's acquisition.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recbulc.ordering.closure import Where
from recbulc.ordering.events import Ints
from recbulc.ordering.ops import NEVER, ThreadOps
from recbulc.recorders.events import Kind
from recbulc.schedule import Part

EOWNERDEAD = 130
GOT_IT = (0, EOWNERDEAD)  # results of a lock call that leave the lock with the caller

ACQUIRE = frozenset(
    {Kind.MUTEX_LOCK, Kind.MUTEX_TRYLOCK, Kind.SPIN_LOCK, Kind.SPIN_TRYLOCK, Kind.RW_WRLOCK, Kind.RW_TRYWRLOCK}
)
SHARE = frozenset({Kind.RW_RDLOCK, Kind.RW_TRYRDLOCK})
RELEASE = frozenset({Kind.MUTEX_UNLOCK, Kind.SPIN_UNLOCK, Kind.RW_UNLOCK})
LOCKING = (*ACQUIRE, *SHARE, *RELEASE, Kind.COND_WAIT)
NODES = (
    *LOCKING,
    Kind.THREAD_START,
    Kind.THREAD_END,
    Kind.CREATE,
    Kind.JOIN,
    Kind.BARRIER_WAIT,
    Kind.ONCE,
    Kind.EXIT,
    Kind.SIGNAL,
)


def node_places(ops: ThreadOps) -> Ints:
    """Which operations of a thread may have edges; its last is always one."""
    wanted = np.isin(ops.kind, NODES)
    if len(wanted):
        wanted[-1] = True
    return np.flatnonzero(wanted)


def sync_edges(threads: list[ThreadOps]) -> list[tuple[Where, Where]]:
    """Edges that hold in every order: create → start, end → join, arrive → leave, routine → who did not run it."""
    return [*_family_edges(threads), *_once_edges(threads), *_barrier_edges(threads)]


def _family_edges(threads: list[ThreadOps]) -> Iterator[tuple[Where, Where]]:
    for t, ops in enumerate(threads):
        for i in ops.of_kind(Kind.CREATE, Kind.JOIN).tolist():
            event = ops.events[i]
            child = int(event["value"])
            if ops.part[i] == Part.BLOCKED or event["old"] or child == t or child >= len(threads):
                continue
            if event["kind"] == Kind.CREATE and len(threads[child]):
                yield (t, i), (child, 0)
            elif event["kind"] == Kind.JOIN and len(threads[child]):
                yield (child, len(threads[child]) - 1), (t, i)


def _once_edges(threads: list[ThreadOps]) -> Iterator[tuple[Where, Where]]:
    ran: dict[int, list[Where]] = defaultdict(list)
    idle: dict[int, list[Where]] = defaultdict(list)
    for t, ops in enumerate(threads):
        for i in ops.of_kind(Kind.ONCE).tolist():
            if ops.part[i] in (Part.END, Part.WHOLE):
                (ran if ops.part[i] == Part.END else idle)[int(ops.object[i])].append((t, i))
    for control, last in unfinished_once(threads).items():
        ran[control].append(last)
    for control, ends in ran.items():
        if len(ends) == 1:
            yield from ((ends[0], other) for other in idle[control] if other[0] != ends[0][0])


def unfinished_once(threads: list[ThreadOps]) -> dict[int, Where]:
    """Controls whose routine has no recorded end, with the last that its thread did.

    Where others returned from the control all the same, the run ended between the routine's end and its stamp.
    """
    begun: dict[int, Where] = {}
    for t, ops in enumerate(threads):
        for i in ops.of_kind(Kind.ONCE).tolist():
            if ops.part[i] == Part.BEGIN:
                begun[int(ops.object[i])] = (t, len(ops) - 1)
            elif ops.part[i] == Part.END:
                begun.pop(int(ops.object[i]), None)
    return begun


def _barrier_edges(threads: list[ThreadOps]) -> Iterator[tuple[Where, Where]]:
    arrivals: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    departures: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    counts: dict[int, list[int]] = defaultdict(list)
    for t, ops in enumerate(threads):
        for i in ops.of_kind(Kind.BARRIER_INIT, Kind.BARRIER_WAIT).tolist():
            barrier = int(ops.object[i])
            if ops.kind[i] == Kind.BARRIER_INIT:
                counts[barrier].append(int(ops.events["value"][i]))
            elif ops.part[i] == Part.BEGIN:
                arrivals[barrier][t].append(i)
            elif ops.part[i] == Part.END:
                departures[barrier][t].append(i)
    for barrier, by_thread in arrivals.items():
        if counts[barrier] != [len(by_thread)]:
            continue  # who takes part in which round is open
        for u, leaves in departures[barrier].items():
            for turn, j in enumerate(leaves):
                yield from (((t, mine[turn]), (u, j)) for t, mine in by_thread.items() if t != u and turn < len(mine))


@dataclass(frozen=True)
class Sections:
    """The sections of one thread: which lock (numbered), the operations that acquire and release it, exclusive or not.

    Sorted by lock, then by `acquire`; `release` is NEVER for a section that did not end.
    """

    lock: Ints
    acquire: Ints
    release: Ints
    exclusive: NDArray[np.bool_]


def find_sections(threads: list[ThreadOps]) -> list[Sections]:
    """The sections of all threads; relocking a recursive mutex begins none."""
    numbers: dict[int, int] = {}
    found = []
    for ops in threads:
        rows: list[tuple[int, int, int, bool]] = []
        held: dict[int, tuple[int, int, bool]] = {}  # lock: acquired at, depth, exclusive
        places = ops.of_kind(*LOCKING)
        columns = zip(
            places.tolist(),
            ops.kind[places].tolist(),
            ops.part[places].tolist(),
            ops.object[places].tolist(),
            ops.events["value"][places].tolist(),
            ops.events["old"][places].tolist(),
            strict=True,
        )
        for i, kind, part, thing, value, old in columns:
            waits = kind == Kind.COND_WAIT
            lock = numbers.setdefault(old if waits else thing, len(numbers))
            if part == Part.BLOCKED or (waits and part == Part.WHOLE):
                continue
            if kind in RELEASE or (waits and part == Part.BEGIN):
                if lock not in held or (not waits and value):
                    continue
                since, depth, exclusive = held[lock]
                if depth > 1:
                    held[lock] = (since, depth - 1, exclusive)
                else:
                    del held[lock]
                    rows.append((lock, since, i, exclusive))
            elif waits or value in GOT_IT:
                since, depth, exclusive = held.get(lock, (i, 0, kind not in SHARE))
                held[lock] = (since, depth + 1, exclusive)
        rows.extend((lock, since, NEVER, exclusive) for lock, (since, _, exclusive) in held.items())
        rows.sort()
        table = np.array(rows, np.int64).reshape(-1, 4)
        found.append(Sections(table[:, 0], table[:, 1], table[:, 2], table[:, 3].astype(bool)))
    return found


def initialised_again(threads: list[ThreadOps]) -> bool:
    """Was some mutex set up twice? Then a section that never ended need not be the last of its address."""
    counts: Counter[int] = Counter()
    for ops in threads:
        counts.update(ops.object[ops.of_kind(Kind.MUTEX_INIT)].tolist())
    return any(count > 1 for count in counts.values())


def order_sections(bounds: list[Ints], nodes: list[Ints], sections: list[Sections], *, last_if_open: bool) -> int:
    """Raise the rows of acquisitions by what is known about their sections; how many edges that made.

    `last_if_open`: a section that never ended comes after all others of its lock.
    """
    added = 0
    width = 1 + max((int(part.acquire.max()) for part in sections if len(part.acquire)), default=0)
    for u, later in enumerate(sections):
        if not len(later.lock):
            continue
        entry = np.searchsorted(nodes[u], later.acquire)
        ended = later.release != NEVER
        leave = np.searchsorted(nodes[u], np.where(ended, later.release, 0))
        for t, earlier in enumerate(sections):
            if t == u or not len(earlier.lock):
                continue
            # how many operations of t are before the end of each section of u; all of them for one without an end
            known = np.where(ended, bounds[u][leave, t], width if last_if_open else 0)
            best = np.zeros(len(later.lock), np.int64)
            for exclusive in (True, False):  # shared sections exclude only exclusive ones
                pick = np.ones(len(earlier.lock), bool) if exclusive else earlier.exclusive
                rows = np.flatnonzero(pick)
                if not len(rows):
                    continue
                keys = earlier.lock[rows] * (width + 1) + earlier.acquire[rows]
                query = later.lock * (width + 1) + np.minimum(known, width)
                place = np.searchsorted(keys, query, side="left") - 1
                row = rows[np.maximum(place, 0)]
                good = (place >= 0) & (earlier.lock[row] == later.lock) & (later.exclusive == exclusive)
                good &= earlier.release[row] != NEVER
                best = np.where(good, earlier.release[row] + 1, best)
            raised = best > bounds[u][entry, t]
            added += int(np.count_nonzero(raised))
            np.maximum.at(bounds[u], (entry[raised], t), best[raised])
    return added
