"""What the stamps alone prove (ReCBuLC §3.3): a ≺ b iff after(a) + hi(core of a, core of b) < before(b).

For a thread's operations in program order the operations of another thread that are before one of them are a prefix,
and the prefixes only grow: one bisection per operation and thread, no matrix.
"""

from __future__ import annotations

import numpy as np

from recbulc.ordering.events import IntervalOf, Ints
from recbulc.ordering.ops import ThreadOps


def stamp_bounds(threads: list[ThreadOps], interval: IntervalOf) -> list[Ints]:
    """For every thread t an array [operation, u]: how many operations of u are before it; own column: its number."""
    bounds = unstamped_bounds(threads)
    for t, ops in enumerate(threads):
        for u, others in enumerate(threads):
            if t != u:
                bounds[t][:, u] = _prefixes(others, ops, interval)
    return bounds


def unstamped_bounds(threads: list[ThreadOps]) -> list[Ints]:
    """The same where only program order is known."""
    bounds = [np.zeros((len(ops), len(threads)), np.int64) for ops in threads]
    for t, ops in enumerate(threads):
        bounds[t][:, t] = np.arange(len(ops))
    return bounds


def _prefixes(others: ThreadOps, ops: ThreadOps, interval: IntervalOf) -> Ints:
    prefixes = np.zeros(len(ops), np.int64)
    cores, cores_after = ops.events["core"], others.events["core_after"]
    ended = others.ended
    for x in np.unique(cores_after[ended]):
        there = np.flatnonzero((cores_after == x) & ended)
        # what stands later in program order is later: an operation ended when the first of its successors had
        ends = np.minimum.accumulate(others.after[there][::-1])[::-1]
        for y in np.unique(cores):
            here = np.flatnonzero(cores == y)
            hi = 0 if x == y else interval(int(x), int(y))[1]
            found = np.searchsorted(ends, ops.before[here] - hi, side="left")
            counts = np.where(found > 0, there[np.maximum(found, 1) - 1] + 1, 0)
            prefixes[here] = np.maximum(prefixes[here], counts)
    return np.maximum.accumulate(prefixes)
