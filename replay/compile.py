"""A schedule as the replay engine maps it: rb_replay.h, in Python.

The lists are the schedule's own, with two additions that it leaves to us: a thread that was seen to end (joined, or
gone while others stood in a deadlock) ends by an operation of its own, so that it is not held past its last one; and
the thread that ended the recorded run is named, because it alone may go on when all lists are done (DESIGN §6).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from recbulc.recorders.events import Flag, Kind
from recbulc.schedule import Op, Part, Schedule

MAGIC = 0x6C75626373636831
VERSION = 1
NONE = 0xFFFFFFFF
DIVERGED_EXIT = 253

HEADER = np.dtype(
    [
        ("magic", "<u8"),
        ("version", "<u4"),
        ("nsites", "<u4"),
        ("nthreads", "<u4"),
        ("nops", "<u4"),
        ("nwaits", "<u4"),
        ("last", "<u4"),
        ("by_place", "<u4"),
        ("pad", "<u4"),
        ("sites_at", "<u8"),
        ("threads_at", "<u8"),
        ("ops_at", "<u8"),
        ("waits_at", "<u8"),
        ("bytes", "<u8"),
    ]
)
SITE = np.dtype("<u4")
THREAD = np.dtype([("parent", "<u4"), ("nth", "<u4"), ("first", "<u4"), ("nops", "<u4")])
OP = np.dtype(
    [
        ("kind", "u1"),
        ("part", "u1"),
        ("flags", "<u2"),
        ("site", "<u4"),
        ("key", "<u4"),
        ("count", "<u4"),
        ("next", "<u4"),
        ("first_wait", "<u4"),
        ("nwaits", "<u4"),
        ("pad", "<u4"),
        ("value", "<i8"),
    ]
)
WAIT = np.dtype([("thread", "<u4"), ("count", "<u4")])

ACCESSES = (Kind.READ, Kind.WRITE, Kind.RMW)
LASTS = (Kind.EXIT, Kind.SIGNAL)
LENIENT = (Kind.MALLOC, Kind.FREE, Kind.INPUT)
ALIGNMENT = 8


@dataclass(frozen=True)
class Compiled:
    """The file's content, and the lists as they are in it."""

    content: bytes
    lists: tuple[tuple[Op, ...], ...]


def compile_schedule(schedule: Schedule, numbers: Mapping[int, int] | None = None) -> Compiled:
    """`numbers` are the sites' global numbers by their index, where the program is not the recorded one.

    A rebuilt program may make more calls of a kind than were recorded (a fix locks something): there calls are counted
    by the place where they are made, which takes the lists to have all calls of each place.
    """
    by_place = numbers is not None
    if numbers is None:
        numbers = {index: site.number for index, site in enumerate(schedule.sites)}
    lists = _lists_with_ends(schedule)
    counted = (op for ops in lists for op in ops if op.kind in ACCESSES or (by_place and has_place(op)))
    gated = {numbers[op.site] for op in counted}
    gated |= {numbers[i] for i, site in enumerate(schedule.sites) if site.kind.startswith("BEFORE_") and i in numbers}
    sites = np.array(sorted(gated), dtype=SITE)
    gates = {int(site): gate for gate, site in enumerate(sites)}

    rows: list[tuple[int, ...]] = []
    waits: list[tuple[int, int]] = []
    threads = np.zeros(len(lists), dtype=THREAD)
    names = {thread.name: number for number, thread in enumerate(schedule.threads)}
    for number, (thread, ops) in enumerate(zip(schedule.threads, lists, strict=True)):
        parent, _, nth = thread.name.rpartition(".")
        threads[number] = (names.get(parent, 0), int(nth) if parent else 0, len(rows), len(ops))
        keys = [
            gates[numbers[op.site]] if op.kind in ACCESSES or (by_place and has_place(op)) else len(sites) + op.kind
            for op in ops
        ]
        counts = _counts_by_place(ops, keys) if by_place else [op.count for op in ops]
        for op, key, count, after in zip(ops, keys, counts, _following(ops, keys), strict=True):
            site = numbers.get(op.site, 0)
            value = op.value - (1 << 64) if op.value >= 1 << 63 else op.value
            rows.append((op.kind, op.part, op.flags, site, key, count, after, len(waits), len(op.waits), 0, value))
            waits.extend(op.waits)
    arrays = (sites, threads, np.array(rows, dtype=OP), np.array(waits, dtype=WAIT))
    return Compiled(_laid_out(arrays, last_thread(schedule), by_place=by_place), lists)


def has_place(op: Op) -> bool:
    """A call that can only be made where it was made; allocations and inputs are matched leniently (rb_replay.c)."""
    return op.site >= 0 and op.kind not in (*ACCESSES, *LASTS, *LENIENT)


def last_thread(schedule: Schedule) -> int:
    """The thread that ended the recorded run; NONE where none did (a deadlock, a time-out)."""
    for number, thread in enumerate(schedule.threads):
        if thread.ops and thread.ops[-1].kind in LASTS:
            return number
    names = [thread.name for thread in schedule.threads]
    if schedule.verdict.how not in {"deadlock", "timeout"} and schedule.verdict.thread in names:
        return names.index(schedule.verdict.thread)
    return NONE


def _lists_with_ends(schedule: Schedule) -> tuple[tuple[Op, ...], ...]:
    ended = {
        op.value
        for thread in schedule.threads
        for op in thread.ops
        if op.kind == Kind.JOIN and op.part != Part.BLOCKED and not op.flags & Flag.TIMED
    }
    if schedule.verdict.how == "deadlock":
        stuck = {name for name, _, _ in schedule.verdict.blocked}
        ended |= {number for number, thread in enumerate(schedule.threads) if thread.name not in stuck}
    return tuple(
        (*thread.ops, Op(Kind.THREAD_END, -1, 0)) if number in ended and _may_end(thread.ops) else thread.ops
        for number, thread in enumerate(schedule.threads)
    )


def _may_end(ops: Sequence[Op]) -> bool:
    return not ops or (ops[-1].kind not in (*LASTS, Kind.THREAD_END) and ops[-1].part != Part.BLOCKED)


def _following(ops: Sequence[Op], keys: Sequence[int]) -> list[int]:
    """For each operation, which of the list has the next instance with its key, plus 1; 0 for none."""
    following = [0] * len(ops)
    seen: dict[int, int] = {}
    for place in range(len(ops) - 1, -1, -1):
        following[place] = seen.get(keys[place], 0)
        if ops[place].part != Part.END:
            seen[keys[place]] = place + 1
    return following


def _counts_by_place(ops: Sequence[Op], keys: Sequence[int]) -> list[int]:
    """Accesses as they are; calls by how many of their key came before them."""
    counts = []
    seen: Counter[int] = Counter()
    begun = False
    for op, key in zip(ops, keys, strict=True):
        second_half = op.part == Part.END or (op.part == Part.BLOCKED and begun)
        begun = op.part == Part.BEGIN
        counts.append(op.count if op.kind in ACCESSES else seen[key] - second_half)
        seen[key] += not second_half
    return counts


def _laid_out(arrays: Sequence[np.ndarray], last: int, *, by_place: bool) -> bytes:
    places = []
    end = HEADER.itemsize
    for array in arrays:
        end += -end % ALIGNMENT
        places.append(end)
        end += array.nbytes
    header = np.zeros(1, dtype=HEADER)
    sites, threads, ops, waits = arrays
    header[0] = (MAGIC, VERSION, len(sites), len(threads), len(ops), len(waits), last, by_place, 0, *places, end)
    content = bytearray(end)
    content[: HEADER.itemsize] = header.tobytes()
    for place, array in zip(places, arrays, strict=True):
        content[place : place + array.nbytes] = array.tobytes()
    return bytes(content)
