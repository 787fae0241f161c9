"""A schedule from an order: operations by site and instance, waits, the verdict; no address is left in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recbulc.ordering.events import Events, Ints
from recbulc.recorders.trace import Trace
from recbulc.schedule import Op, Part, Schedule, ShownBy, Site, ThreadSchedule, Verdict
from recbulc.solver.conflict_order import ACCESSES, ConflictOrder, faulted
from recbulc.solver.problem import Problem
from recbulc.solver.racing import Race

SIGN = 1 << 63


@dataclass
class SiteBook:
    """The sites that a schedule names, numbered in the order in which they are first asked for."""

    known: dict[int, Site]
    sites: list[Site] = field(default_factory=list)
    index: dict[int, int] = field(default_factory=dict)

    def place(self, number: int) -> int:
        """The index of a site by its global number; −1 for none."""
        if number <= 0 or number not in self.known:
            return -1
        if number not in self.index:
            self.index[number] = len(self.sites)
            self.sites.append(self.known[number])
        return self.index[number]


def write_schedule(trace: Trace, problem: Problem, found: ConflictOrder, race: Race) -> Schedule:
    """Everything that replay needs (docs/schedule.md)."""
    book = SiteBook(trace.sites)
    counts = [instances(events) for events in trace.events]
    lists: list[list[Op]] = [[] for _ in trace.threads]
    columns = [_columns(lane.ops.events) for lane in problem.lanes]
    for number, (t, i) in enumerate(found.order):
        ops = problem.lanes[t].ops
        kind, value, site, call, flags = (column[i] for column in columns[t])
        access = kind in ACCESSES
        lists[t].append(
            Op(
                kind=kind,
                site=book.place(site if access else call),
                count=int(counts[t][ops.index[i]]),
                waits=found.waits[t, i],
                value=0 if access else value - (SIGN << 1) if value >= SIGN else value,
                part=int(Part.BLOCKED if faulted(problem, t, i) else ops.part[i]),
                order=number,
                flags=flags,
            )
        )
    meta = trace.meta
    verdict = _verdict(meta.verdict, book)
    return Schedule(
        program=meta.program,
        build_id=meta.build_id,
        argv=meta.argv,
        env=meta.env,
        cwd=meta.cwd,
        stdin=meta.stdin,
        threads=tuple(
            ThreadSchedule(thread.name, tuple(ops), thread.core)
            for thread, ops in zip(trace.threads, lists, strict=True)
        ),
        sites=tuple(book.sites),
        verdict=verdict,
        timeout_s=meta.timeout_s,
        racing=race.racing,
        shown_by=ShownBy.TRACE if race.certain else ShownBy.PATTERN,
    )


def instances(events: Events) -> Ints:
    """How often the thread had come by before: accesses by their site, calls by their kind."""
    access = np.isin(events["kind"], ACCESSES)
    keys = np.where(access, events["site"].astype(np.int64) + 256, events["kind"])
    return occurrences(keys)


def occurrences(keys: NDArray[Any]) -> Ints:
    """For every element, how many equal ones stand before it."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(keys) else np.empty(0, int)
    counts = np.empty(len(keys), np.int64)
    counts[order] = np.arange(len(keys)) - np.repeat(first, np.diff(np.append(first, len(keys))))
    return counts


def _columns(events: Events) -> tuple[list[int], ...]:
    return tuple(events[name].tolist() for name in ("kind", "value", "site", "call", "flags"))


def _verdict(verdict: Verdict, book: SiteBook) -> Verdict:
    return Verdict(
        how=verdict.how,
        code=verdict.code,
        fail_if=verdict.fail_if,
        detail=verdict.detail,
        thread=verdict.thread,
        site=book.place(verdict.site),
        blocked=tuple((name, kind, book.place(site)) for name, kind, site in verdict.blocked),
    )
