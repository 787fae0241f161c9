"""Shared memory cut into cells: the smallest pieces that every access touches wholly or not at all.

Accesses of different sizes overlap; cut at all their ends, memory is a row of cells, and an access covers a stretch of
them. Only cells that two threads touch, at least one of them writing, are kept. To free a block is to write to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recbulc.ordering.events import Ints
from recbulc.ordering.ops import ACCESSES, ThreadOps
from recbulc.recorders.events import Kind


@dataclass(frozen=True)
class Touches:
    """The operations of one thread that touch shared cells: accesses and frees, in program order."""

    op: Ints
    first: Ints  # cell
    end: Ints  # one beyond the last cell
    writes: NDArray[np.bool_]


@dataclass(frozen=True)
class Cells:
    """All shared cells, by address, and who touches them."""

    address: NDArray[np.uint64]
    width: Ints  # bytes, 1 to 8
    touches: tuple[Touches, ...]

    def __len__(self) -> int:
        return len(self.address)

    def stretch(self, start: int, size: int) -> tuple[int, int]:
        """The cells within [start, start + size)."""
        first, end = np.searchsorted(self.address, np.array([start, start + size], np.uint64))
        return int(first), int(end)


def cut(threads: list[ThreadOps]) -> Cells:
    """The shared cells of a recording."""
    reach = [_reach(ops) for ops in threads]
    ends = [np.concatenate([start, end])[np.tile(access, 2)] for _, start, end, access, _ in reach]
    marks = np.unique(np.concatenate(ends)) if ends else np.zeros(0, np.uint64)
    spans = []
    users = np.zeros(len(marks) + 1, np.int64)
    written = np.zeros(len(marks) + 1, np.int64)
    for _, start, end, _, writes in reach:
        first, stop = np.searchsorted(marks, start), np.searchsorted(marks, end)
        spans.append((first, stop))
        users += _covered(first, stop, len(marks) + 1) > 0
        written += _covered(first[writes], stop[writes], len(marks) + 1)
    shared = (users >= 2) & (written > 0)
    before = np.concatenate([[0], np.cumsum(shared)])
    touches = []
    for (op, _, _, _, writes), (first, stop) in zip(reach, spans, strict=True):
        mine = before[stop] > before[first]
        touches.append(Touches(op[mine], before[first[mine]], before[stop[mine]], writes[mine]))
    kept = np.flatnonzero(shared)
    return Cells(
        marks[kept], (marks[np.minimum(kept + 1, len(marks) - 1)] - marks[kept]).astype(np.int64), tuple(touches)
    )


def _reach(ops: ThreadOps) -> tuple[Ints, NDArray[np.uint64], NDArray[np.uint64], NDArray[np.bool_], NDArray[np.bool_]]:
    op = ops.of_kind(*ACCESSES, Kind.FREE)
    events = ops.events[op]
    access = events["kind"] != Kind.FREE
    size = np.where(access, events["size"], events["value"]).astype(np.uint64)
    silent = (events["kind"] == Kind.RMW) & (events["value"] == events["old"]) & ops.ended[op]
    writes = (events["kind"] != Kind.READ) & ~silent  # an RMW that changes nothing only reads
    return op, events["object"], events["object"] + size, access, writes


def _covered(first: Ints, stop: Ints, length: int) -> Ints:
    steps = np.bincount(first, minlength=length) - np.bincount(stop, minlength=length)
    return np.cumsum(steps)[:length]


def incidences(touches: Touches) -> tuple[Ints, Ints]:
    """Every (index in `touches`, cell), ordered by the former."""
    counts = touches.end - touches.first
    row = np.repeat(np.arange(len(counts)), counts)
    offset = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    return row, touches.first[row] + offset
