"""What is to be solved: the operations that matter, as columns and small tuples.

Operations on memory are lists of (cell, value) that they read and then write; ANY is a value that nobody recorded (what
malloc leaves, what an access in flight wrote) and that the first read defines. Accesses to what only one thread
touches are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from recbulc.ordering.cells import Cells
from recbulc.ordering.events import Ints, Recording
from recbulc.ordering.ops import ACCESSES, MARKS, ThreadOps
from recbulc.ordering.order import PartialOrder
from recbulc.ordering.sync import unfinished_once
from recbulc.recorders.events import POISON, Flag, Kind
from recbulc.schedule import Part

ANY = -1
Slots = tuple[tuple[int, int], ...]  # (cell, value)


@dataclass(frozen=True)
class Lane:
    """One thread's operations in program order."""

    ops: ThreadOps
    reads: list[Slots]
    writes: list[Slots]
    required: int  # so many must happen; what follows did not end
    key: list[int]  # the order to try first: about when it happened, by one clock; without stamps, how far it is

    def __len__(self) -> int:
        return len(self.reads)


@dataclass(frozen=True)
class Problem:
    """All threads, and bounds[t][i, u]: so many operations of u are before operation i of t."""

    lanes: tuple[Lane, ...]
    bounds: list[Ints]
    cells: Cells
    recording: Recording
    stamped: bool
    external: dict[tuple[int, int], None] = field(default_factory=dict)  # reads that no recorded write explains
    relaxed: set[tuple[int, int]] = field(default_factory=set)  # calls whose result nothing recorded explains

    @property
    def accesses(self) -> int:
        """Operations on shared memory."""
        return sum(bool(r or w) for lane in self.lanes for r, w in zip(lane.reads, lane.writes, strict=True))


def build_problem(known: PartialOrder, recording: Recording, *, stamped: bool) -> Problem:
    """From what is known about the order."""
    cells = known.cells
    chosen = [_chosen(t, ops, cells) for t, ops in enumerate(known.threads)]
    ranks = [
        np.concatenate([[0], np.cumsum(_mask(where, len(ops)))])
        for where, ops in zip(chosen, known.threads, strict=True)
    ]
    bounds = []
    for where, rows in zip(chosen, known.bounds, strict=True):
        mine = rows[where]
        bounds.append(np.stack([rank[mine[:, u]] for u, rank in enumerate(ranks)], axis=1) if len(mine) else mine)
    shift = _shifts(recording) if stamped else None
    lanes = []
    for t, (where, ops) in enumerate(zip(chosen, known.threads, strict=True)):
        touches = cells.touches[t]
        spans = dict(
            zip(touches.op.tolist(), zip(touches.first.tolist(), touches.end.tolist(), strict=True), strict=True)
        )
        lanes.append(_lane(ops.select(where), [spans.get(op) for op in where.tolist()], cells, shift))
    return Problem(tuple(lanes), bounds, cells, recording, stamped, relaxed=_returned_unseen(lanes))


def _returned_unseen(lanes: list[Lane]) -> set[tuple[int, int]]:
    """Returns from a `pthread_once` whose routine has no recorded end."""
    unfinished = unfinished_once([lane.ops for lane in lanes])
    return {
        (t, i)
        for t, lane in enumerate(lanes)
        for i in lane.ops.of_kind(Kind.ONCE).tolist()
        if lane.ops.part[i] == Part.WHOLE and int(lane.ops.object[i]) in unfinished
    }


def _mask(where: Ints, length: int) -> Ints:
    mask = np.zeros(length, np.int64)
    mask[where] = 1
    return mask


def _chosen(t: int, ops: ThreadOps, cells: Cells) -> Ints:
    wanted = ~np.isin(ops.kind, (*ACCESSES, *MARKS, Kind.LOST))
    wanted[cells.touches[t].op] = True
    faulted = np.flatnonzero(ops.kind == Kind.SIGNAL)
    if len(faulted) and faulted[0] and not ops.ended[faulted[0] - 1]:
        wanted[faulted[0] - 1] = True  # whatever it touched
    return np.flatnonzero(wanted)


def _shifts(recording: Recording) -> dict[int, int]:
    """By how much to set back the stamps of each core for a common clock, about."""
    cores = sorted({int(core) for events in recording.threads for core in np.unique(events["core"])})
    return {core: sum(recording.interval(cores[0], core)) // 2 if core != cores[0] else 0 for core in cores}


def _lane(ops: ThreadOps, spans: list[tuple[int, int] | None], cells: Cells, shift: dict[int, int] | None) -> Lane:
    reads: list[Slots] = []
    writes: list[Slots] = []
    address, width = cells.address.tolist(), cells.width.tolist()
    events = ops.events
    columns = zip(
        ops.kind.tolist(), events["object"].tolist(), events["value"].tolist(), events["old"].tolist(),
        events["flags"].tolist(), ops.ended.tolist(), spans, strict=True,
    )  # fmt: skip
    for kind, start, value, old, flags, ended, span in columns:
        read: Slots = ()
        write: Slots = ()
        if kind == Kind.MALLOC and start:
            write = tuple((cell, 0 if flags & Flag.ZERO else ANY) for cell in range(*cells.stretch(start, value)))
        elif span is not None and kind == Kind.FREE:
            write = tuple((cell, _poison(width[cell])) for cell in range(*span))
        elif span is not None:
            whole = old if kind == Kind.RMW else value
            if kind != Kind.WRITE and ended:
                read = tuple((c, _piece(whole, address[c] - start, width[c])) for c in range(*span))
            if kind != Kind.READ and not (kind == Kind.RMW and ended and value == old):
                write = tuple((c, _piece(value, address[c] - start, width[c]) if ended else ANY) for c in range(*span))
        reads.append(read)
        writes.append(write)
    required = len(ops)
    fatal = len(ops) and ops.kind[-1] == Kind.SIGNAL
    while required and not fatal and (ops.part[required - 1] == Part.BLOCKED or not ops.ended[required - 1]):
        if ops.part[required - 1] == Part.BEGIN:
            break  # that half is over
        required -= 1
    return Lane(ops, reads, writes, required, list(range(len(ops))) if shift is None else _times(ops, shift))


def _times(ops: ThreadOps, shift: dict[int, int]) -> list[int]:
    """The middle of the stamps of each, by one clock."""
    events = ops.events
    begin = ops.before - np.array([shift[int(c)] for c in events["core"]], np.int64)
    end = np.where(
        ops.ended, ops.after - np.array([shift.get(int(c), 0) for c in events["core_after"]], np.int64), begin
    )
    times: list[int] = ((begin + np.maximum(end, begin)) // 2).tolist()
    return times


def _poison(width: int) -> int:
    return int.from_bytes(bytes([POISON]) * width, "little")


def _piece(value: int, offset: int, width: int) -> int:
    return (value >> (8 * offset)) & ((1 << (8 * width)) - 1)
