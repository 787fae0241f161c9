"""The interleaving of a schedule, as rows: one source line of one thread each, in the order in which they ran.

The data for ReCBuLC §4's "reproducing schedule" as a person reads it: rendered by recbulc.report.columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import NamedTuple

from recbulc.recorders.events import Kind
from recbulc.report.source import Sources
from recbulc.schedule import Access, Op, Part, Schedule, Verdict

AROUND = 3  # rows kept on either side of one that matters
ROWS = 40  # shown at most before rows far from what matters are left out

SILENT = frozenset({Kind.THREAD_START, Kind.THREAD_END, Kind.INPUT, Kind.MALLOC, Kind.EXIT, Kind.SIGNAL, Kind.LOST})
RACING_KINDS = {  # how an Access of a racing pair calls what an event is
    "read": frozenset({Kind.READ}),
    "write": frozenset({Kind.WRITE, Kind.FREE, Kind.RMW}),
    "atomic": frozenset({Kind.READ, Kind.WRITE, Kind.RMW}),
    "lock": frozenset({Kind.MUTEX_LOCK, Kind.RW_RDLOCK, Kind.RW_WRLOCK, Kind.SPIN_LOCK, Kind.SEM_WAIT}),
    "wait": frozenset({Kind.COND_WAIT, Kind.SEM_WAIT, Kind.BARRIER_WAIT}),
    "signal": frozenset({Kind.COND_SIGNAL, Kind.COND_BROADCAST, Kind.SEM_POST}),
}


class Mark(Enum):
    """Why a row matters."""

    NONE = ""
    RACING = "racing"
    BLOCKED = "blocked"
    FAILED = "failed"


@dataclass(frozen=True)
class Row:
    """Consecutive operations of one thread on one source line."""

    thread: int
    file: str
    line: int
    function: str
    text: str  # of the source line; empty where the file is gone
    did: tuple[str, ...]  # what the operations were: read, write, mutex_lock, ...
    mark: Mark = Mark.NONE
    value: int | None = None  # of a racing access, as far as it is known


@dataclass(frozen=True)
class Gap:
    """Rows that are left out."""

    rows: int


@dataclass(frozen=True)
class Interleaving:
    """All of it: columns by thread name, rows in the order they ran."""

    threads: tuple[str, ...]
    rows: tuple[Row, ...]
    verdict: Verdict
    stale: tuple[str, ...]

    def around_the_failure(self, most: int = ROWS) -> tuple[Row | Gap, ...]:
        """The rows near those that matter and the last ones; all, where they are few."""
        if len(self.rows) <= most:
            return self.rows
        last = len(self.rows) - 1
        centres = [i for i, row in enumerate(self.rows) if row.mark is not Mark.NONE] + [last]
        kept = sorted({i for centre in centres for i in range(centre - AROUND, centre + AROUND + 1) if 0 <= i <= last})
        shown: list[Row | Gap] = []
        expected = 0
        for i in kept:
            if i > expected:
                shown.append(Gap(i - expected))
            shown.append(self.rows[i])
            expected = i + 1
        return tuple(shown)

    def columns(self, shown: tuple[Row | Gap, ...]) -> tuple[int, ...]:
        """The threads that have a row among those shown."""
        return tuple(sorted({row.thread for row in shown if isinstance(row, Row)}))


class _Ran(NamedTuple):
    """An operation in its place: number of its thread, nth of its list."""

    order: int
    thread: int
    nth: int
    op: Op


def interleave(schedule: Schedule, sources: Sources | None = None) -> Interleaving:
    """From the total order that was found; the schedule alone is enough, source files make it readable."""
    sources = sources or Sources(schedule)
    ran = sorted(
        _Ran(op.order, number, nth, op)
        for number, thread in enumerate(schedule.threads)
        for nth, op in enumerate(thread.ops)
        if op.site >= 0 and op.kind not in SILENT
    )
    racing = _racing_ops(schedule, ran)
    failed = _last_of_the_failing_thread(schedule, ran)

    def place(entry: _Ran) -> tuple[int, str, int, bool]:
        site = schedule.sites[entry.op.site]
        return entry.thread, site.file, site.line, entry.op.part == Part.BLOCKED

    rows = []
    for (number, file, line, blocked), group in groupby(ran, key=place):
        members = list(group)
        mark, value = Mark.NONE, None
        for entry in members:
            if entry in racing:
                mark, value = Mark.RACING, racing[entry].value
        if members[-1] == failed:
            mark = Mark.FAILED
        elif blocked:
            mark = Mark.BLOCKED
        rows.append(
            Row(
                thread=number,
                file=file,
                line=line,
                function=schedule.sites[members[0].op.site].function,
                text=sources.text(file, line),
                did=tuple(dict.fromkeys(Kind(entry.op.kind).name.lower() for entry in members)),
                mark=mark,
                value=value,
            )
        )
    names = tuple(thread.name for thread in schedule.threads)
    return Interleaving(names, tuple(rows), schedule.verdict, sources.stale)


def _racing_ops(schedule: Schedule, ran: list[_Ran]) -> dict[_Ran, Access]:
    """For every racing access the last operation that it can be."""
    found = {}
    for access in schedule.racing:
        for entry in reversed(ran):
            site = schedule.sites[entry.op.site]
            if (
                (site.file, site.line) == (access.file, access.line)
                and schedule.threads[entry.thread].name == access.thread
                and entry.op.kind in RACING_KINDS[access.kind]
            ):
                found[entry] = access
                break
    return found


def _last_of_the_failing_thread(schedule: Schedule, ran: list[_Ran]) -> _Ran | None:
    """Where the thread that got the signal, or ended the process, came to; None for a deadlock, where many end."""
    if schedule.verdict.failed and not schedule.verdict.blocked:
        for entry in reversed(ran):
            if schedule.threads[entry.thread].name == schedule.verdict.thread:
                return entry
    return None
