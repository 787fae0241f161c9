"""Recordings written down by hand, and simulated ones as traces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.unit.solver.simulate import Simulator

from recbulc.calibration.interval import Interval
from recbulc.ordering.events import Recording
from recbulc.ordering.order import partial_order
from recbulc.recorders.events import EVENT, Kind
from recbulc.recorders.meta import Meta, PairSkew, TraceClocks, TraceThread
from recbulc.recorders.trace import Trace
from recbulc.schedule import Site, Verdict
from recbulc.solver.problem import Problem, build_problem
from recbulc.tsc_probe.counter import Granule

X, Y, Z = 0x1000, 0x1008, 0x1010
LOCK, COND, SEM, BAR, ONCE, RW = 0x2000, 0x2100, 0x2200, 0x2300, 0x2400, 0x2500
WIDE = 10**6  # an interval under which stamps prove nothing
Row = dict[str, int]


def read(address: int, value: int, size: int = 8, **more: int) -> Row:
    return {"kind": Kind.READ, "object": address, "value": value, "size": size} | more


def write(address: int, value: int, size: int = 8, **more: int) -> Row:
    return {"kind": Kind.WRITE, "object": address, "value": value, "size": size} | more


def rmw(address: int, old: int, value: int, **more: int) -> Row:
    return {"kind": Kind.RMW, "object": address, "old": old, "value": value, "size": 8} | more


def call(kind: Kind, thing: int = 0, value: int = 0, **more: int) -> Row:
    return {"kind": kind, "object": thing, "value": value} | more


def log(core: int, rows: list[Row], start: int = 10_000) -> np.ndarray:
    """`before` and `after` may be given; otherwise an event takes 10 of every 100 ticks, by its place."""
    events = np.zeros(len(rows), EVENT)
    for i, row in enumerate(rows):
        at = start + 100 * i
        for name, value in ({"before": at, "after": at + 10, "core": core, "core_after": core} | row).items():
            events[i][name] = value
    return events


def threads(*rows: list[Row], slack: int = WIDE, deadlocked: bool = False) -> Recording:
    """Just these, none of which anybody created; each on a core of its own, whose clocks agree within ± slack."""
    logs = tuple(log(core, mine) for core, mine in enumerate(rows))
    return Recording(logs, lambda x, y: (-slack, slack), deadlocked)


def workers(
    *rows: list[Row],
    slack: int = WIDE,
    deadlocked: bool = False,
    before: tuple[Row, ...] = (),
    after: tuple[Row, ...] = (),
) -> Recording:
    """Threads 1, 2, ... of a main thread that creates and joins them; `before` and `after` are its own events."""
    numbers = range(1, len(rows) + 1)
    ahead = [*before, *(call(Kind.CREATE, value=t) for t in numbers)]
    joins = [] if deadlocked else [*(call(Kind.JOIN, value=t) for t in numbers), *after, call(Kind.EXIT)]
    main = np.concatenate([log(0, ahead, 1_000), log(0, joins, 900_000)])
    ends = [] if deadlocked else [call(Kind.THREAD_END)]
    logs = [log(t, [call(Kind.THREAD_START), *mine, *ends]) for t, mine in enumerate(rows, 1)]
    return Recording((main, *logs), lambda x, y: (-slack, slack), deadlocked)


def problem_of(recording: Recording, *, stamps: bool = False) -> Problem:
    return build_problem(partial_order(recording, stamps=stamps), recording, stamped=stamps)


def changed(recording: Recording, thread: int, event: int, **fields: int) -> Recording:
    """With other contents of one event."""
    logs = [events.copy() for events in recording.threads]
    for name, value in fields.items():
        logs[thread][event][name] = value
    return Recording(tuple(logs), recording.interval, recording.deadlocked, recording.names)


def truth_of(simulator: Simulator, problem: Problem) -> list[tuple[int, int]]:
    """The true order of the operations of a problem."""
    at = {(t, event, int(part)): n for n, (t, event, part) in enumerate(simulator.truth)}
    found = [
        (at[t, int(event), int(part)], t, i)
        for t, lane in enumerate(problem.lanes)
        for i, (event, part) in enumerate(zip(lane.ops.index, lane.ops.part, strict=True))
        if (t, int(event), int(part)) in at
    ]
    return [(t, i) for _, t, i in sorted(found)]


def trace_of(recording: Recording, how: str = "exit") -> Trace:
    """A recording as a trace: site 3 stands in line 30 of bug.c."""
    cores = sorted({int(core) for events in recording.threads for core in events["core"]})
    pairs = tuple(
        PairSkew((x, y), Interval(*recording.interval(x, y)), Interval(*recording.interval(x, y)))
        for x in cores
        for y in cores
        if x < y
    )
    clocks = TraceClocks(
        hz=1e9, granule=Granule(1, 0), width_bits=64, modified=False, why="", injected=None,
        pairs=pairs, model=pairs, before=pairs, after=pairs,
    )  # fmt: skip
    meta = Meta(
        program="/bug", build_id="0", argv=("bug",), env={}, cwd="/", stdin=b"", level="RW", stamp="2e",
        recorder="local", cores=tuple(cores), pinned=True, seed=1, strategy="plain", run=1, timeout_s=1.0, created="",
        complete=True, clocks=clocks, verdict=Verdict(how, 1),
    )  # fmt: skip
    used = sorted({int(site) for events in recording.threads for name in ("site", "call") for site in events[name]})
    sites = {n: Site(n, "BEFORE_READ", "main", "bug.c", 10 * n, 1, 0) for n in used if n}
    described = tuple(
        TraceThread(
            number=t, name="0" if not t else f"0.{t}", parent=0, core=0, events=len(events), lost=False, end="ended",
            blocked=None, pthread=0,
        )
        for t, events in enumerate(recording.threads)
    )  # fmt: skip
    return Trace(Path("/trace"), meta, described, recording.threads, sites, frozenset(), ())
