"""What a recording proves about its order (ReCBuLC §3.3): stamps, program order, fork and join, locks."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from recbulc.errors import RecbulcError
from recbulc.ordering.cells import Cells, cut
from recbulc.ordering.closure import Contradiction, Where, close, spread
from recbulc.ordering.conflicts import count_conflicts
from recbulc.ordering.events import Ints, Recording
from recbulc.ordering.ops import ThreadOps, split
from recbulc.ordering.stamps import stamp_bounds, unstamped_bounds
from recbulc.ordering.sync import find_sections, initialised_again, node_places, order_sections, sync_edges
from recbulc.recorders.events import Kind


class ClocksClashError(RecbulcError):
    """Stamps and synchronisation contradict each other."""


@dataclass(frozen=True)
class PartialOrder:
    """Everything known before solving: bounds[t][i, u] operations of thread u are before operation i of thread t."""

    threads: list[ThreadOps]
    bounds: list[Ints]
    cells: Cells

    def before(self, a: Where, b: Where) -> bool:
        """Is a before b for certain?"""
        return bool(self.bounds[b[0]][b[1], a[0]] > a[1])


@dataclass(frozen=True)
class OpenPair:
    """Two sites whose accesses were left unordered `count` times; sites as the runtime numbers them."""

    sites: tuple[int, int]
    count: int


@dataclass(frozen=True)
class OrderReport:
    """The figures of `recbulc order`."""

    events: int
    conflicting_pairs: int
    ordered: int
    open_pairs: tuple[OpenPair, ...]
    seconds: float

    @property
    def unordered(self) -> int:
        """Pairs left open."""
        return self.conflicting_pairs - self.ordered

    @property
    def ordered_fraction(self) -> float:
        """1 where nothing conflicts."""
        return self.ordered / self.conflicting_pairs if self.conflicting_pairs else 1.0


def partial_order(recording: Recording, *, stamps: bool = True) -> PartialOrder:
    """Order the operations of a recording as far as it proves their order; `stamps` off: as if there were none."""
    threads = split(recording)
    direct = stamp_bounds(threads, recording.interval) if stamps else unstamped_bounds(threads)
    nodes = [node_places(ops) for ops in threads]
    rows = [bound[node] for bound, node in zip(direct, nodes, strict=True)]
    for (t, i), (u, j) in sync_edges(threads):
        place = int(np.searchsorted(nodes[u], j))
        rows[u][place, t] = max(rows[u][place, t], i + 1)
    sections = find_sections(threads)
    last_if_open = not initialised_again(threads)
    try:
        close(rows, nodes)
        while order_sections(rows, nodes, sections, last_if_open=last_if_open):
            close(rows, nodes)
    except Contradiction as found:
        raise ClocksClashError(
            f"the stamps contradict the synchronisation: {describe_cycle(threads, found.cycle, recording)}",
            "the clocks moved while recording, or the interval is too narrow: use --interval sound, calibrate and "
            "record again",
        ) from found
    spread_rows = [spread(*parts) for parts in zip(direct, rows, nodes, strict=True)]
    return PartialOrder(threads, through_others(spread_rows), cut(threads))


def through_others(bounds: list[Ints]) -> list[Ints]:
    """One more step: what is before the last operation that is before mine is before mine."""
    out = [bound.copy() for bound in bounds]
    for t, mine in enumerate(out):
        for u, theirs in enumerate(bounds):
            if u == t or not len(theirs) or not len(mine):
                continue
            last = bounds[t][:, u] - 1
            mine[:] = np.maximum(mine, np.where((last >= 0)[:, None], theirs[np.maximum(last, 0)], 0))
        if len(mine):
            mine[:, t] = np.arange(len(mine))
    return out


def describe_cycle(threads: list[ThreadOps], cycle: tuple[Where, ...], recording: Recording) -> str:
    """The operations of a cycle of facts, for people."""
    names = [
        f"{Kind(threads[t].kind[i]).name} (thread {recording.name(t)}, event {threads[t].index[i]})" for t, i in cycle
    ]
    return " → ".join([*names, names[0]])


def order(recording: Recording, most_open: int = 20) -> OrderReport:
    """Count what is ordered and what is not, and name the `most_open` most frequent pairs of sites left open."""
    start = time.monotonic()
    known = partial_order(recording)
    sites = [ops.events["site"].astype(np.int64) for ops in known.threads]
    conflicts = count_conflicts(known.cells, known.bounds, sites)
    listed = tuple(OpenPair(pair, count) for pair, count in conflicts.open_ops.most_common(most_open))
    return OrderReport(recording.events, conflicts.pairs, conflicts.ordered, listed, time.monotonic() - start)
