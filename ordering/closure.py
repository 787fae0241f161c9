"""Order facts and what follows from them, as vector clocks.

A row of bounds says for one operation how many operations of each thread are before it. An edge a → b is a larger entry
in the row of b; `close` adds what follows by transitivity. Only *nodes* (operations that may have edges) take part:
what lies between two nodes of a thread is as ordered as the earlier one, and as its own stamps say.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from recbulc.ordering.events import Ints

Where = tuple[int, int]  # thread, operation


@dataclass(frozen=True)
class Contradiction(Exception):  # noqa: N818 (a finding of the search, which its caller turns into a sentence)
    """Facts that no order has: each operation of the cycle would be before the next, and the last before the first."""

    cycle: tuple[Where, ...]


def close(bounds: list[Ints], nodes: list[Ints]) -> None:  # noqa: PLR0912 (one loop, and the hottest)
    """Make the rows of the nodes transitive, in place; bounds[t][k] is the row of operation nodes[t][k]."""
    rows = [array.tolist() for array in bounds]
    places = [array.tolist() for array in nodes]
    whole = [len(place) == 0 or place[-1] == len(place) - 1 for place in places]
    threads = range(len(rows))
    done = [0] * len(rows)
    lengths = [len(row) for row in rows]
    moved = True
    while moved:
        moved = False
        for t in threads:
            mine, k, last = rows[t], done[t], lengths[t]
            previous = mine[k - 1] if k else [0] * len(rows)
            while k < last:
                row = mine[k]
                joins = []
                for u in threads:
                    count = row[u]
                    if count > previous[u]:
                        if u != t:
                            rank = min(count, lengths[u]) if whole[u] else bisect_left(places[u], count)
                            if rank > done[u]:
                                break
                            if rank:
                                joins.append(rows[u][rank - 1])
                    else:
                        row[u] = previous[u]
                else:
                    for other in joins:
                        for u, count in enumerate(other):
                            if count > row[u]:  # noqa: PLR1730 (max() is slower)
                                row[u] = count
                    if row[t] > places[t][k]:
                        raise Contradiction(((t, places[t][k]), (t, row[t] - 1)))
                    previous = row
                    k += 1
                    continue
                break
            moved = moved or k > done[t]
            done[t] = k
    if any(done[t] < lengths[t] for t in threads):
        raise Contradiction(_cycle(rows, places, done))
    for array, row in zip(bounds, rows, strict=True):
        if len(row):
            array[:] = row


def _cycle(rows: list[list[list[int]]], places: list[list[int]], done: list[int]) -> tuple[Where, ...]:
    """Follow who waits for whom until a thread comes again."""
    thread = next(t for t in range(len(rows)) if done[t] < len(rows[t]))
    seen: list[int] = []
    chain: list[Where] = []
    while thread not in seen:
        seen.append(thread)
        row = rows[thread][done[thread]]
        chain.append((thread, places[thread][done[thread]]))
        thread = next(u for u in range(len(rows)) if u != thread and bisect_left(places[u], row[u]) > done[u])
        chain.append((thread, rows_end(places[thread], row[thread])))
    return tuple(reversed(chain[2 * seen.index(thread) :]))


def rows_end(place: list[int], count: int) -> int:
    """The last node among the first `count` operations."""
    return place[bisect_left(place, count) - 1]


def spread(direct: Ints, rows: Ints, nodes: Ints) -> Ints:
    """The rows of all operations of a thread, from their own stamps and those of the nodes before them."""
    if not len(nodes):
        return direct
    rank = np.searchsorted(nodes, np.arange(len(direct)), side="right") - 1
    spread_rows = np.where((rank >= 0)[:, None], rows[np.maximum(rank, 0)], 0)
    return np.maximum(direct, spread_rows)
