"""From a trace to a schedule: order, saturate, search, check, reduce, write (ReCBuLC §4; DESIGN §5).

Nothing leaves here that an independent walk through the trace has not confirmed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from recbulc.calibration.model import Kind as IntervalKind
from recbulc.ordering.closure import Contradiction
from recbulc.ordering.conflicts import count_conflicts
from recbulc.ordering.events import Recording, recording_of
from recbulc.ordering.order import ClocksClashError, describe_cycle, partial_order
from recbulc.recorders.trace import Trace
from recbulc.schedule import Schedule
from recbulc.solver.check import Step, check_order
from recbulc.solver.conflict_order import Where, reduce_order, up_to_failure
from recbulc.solver.frontier import Frontier, Stuck
from recbulc.solver.problem import Problem, build_problem
from recbulc.solver.saturate import saturate
from recbulc.solver.writing import write_schedule

Status = Literal["sat", "unsat", "timeout", "unsupported"]
Engine = Literal["frontier", "z3"]


@dataclass(frozen=True)
class Figures:
    """`unknowns`: operations whose place among conflicting ones is open after saturation. `constraints`: choices of a
    write for a read; before: of all writes to what it read, after: of those left by stamps, order and values.
    """

    accesses: int = 0
    unknowns: int = 0
    constraints_before: int = 0
    constraints: int = 0
    build_seconds: float = 0.0
    solve_seconds: float = 0.0
    ordered_fraction: float = 0.0


@dataclass(frozen=True)
class Found:
    """An order of all operations that explains a recording, or why there is none."""

    status: Status
    figures: Figures
    problem: Problem | None = None
    order: tuple[Where, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Solution:
    """What came of a trace; figures as in Figures.

    `external` names reads that no recorded write explains, `switches` counts those of the schedule between threads,
    `why` says what is in the way where there is no schedule.
    """

    status: Status
    schedule: Schedule | None = None
    accesses: int = 0
    unknowns: int = 0
    constraints_before: int = 0
    constraints: int = 0
    build_seconds: float = 0.0
    solve_seconds: float = 0.0
    ordered_fraction: float = 0.0
    external: tuple[str, ...] = ()
    switches: int = 0
    why: str = ""


def solve(
    trace: Trace,
    *,
    timestamps: bool = True,
    interval: IntervalKind = "sound",
    timeout_s: float = 60.0,
    engine: Engine = "frontier",
) -> Solution:
    """Find an order that explains every recorded value, and write it as a schedule; `timestamps` off is CLAP alone."""
    lost = [thread.name for thread in trace.threads if thread.lost]
    if lost:
        return Solution("unsupported", why=f"the log of thread {lost[0]} could not grow: the rest of it is missing")
    recording = recording_of(trace, interval)
    found = find_order(recording, timestamps=timestamps, timeout_s=timeout_s, engine=engine)
    solution = Solution(found.status, why=found.why, **vars(found.figures))
    if found.status != "sat" or found.problem is None:
        return solution
    start = time.monotonic()
    signalled = trace.meta.verdict.how == "signal"
    reduced = reduce_order(found.problem, up_to_failure(found.problem, list(found.order), signalled=signalled))
    return replace(
        solution,
        schedule=write_schedule(trace, found.problem, reduced),
        external=external_writes(trace, found.problem),
        switches=reduced.switches,
        solve_seconds=solution.solve_seconds + time.monotonic() - start,
    )


def find_order(
    recording: Recording, *, timestamps: bool = True, timeout_s: float = 60.0, engine: Engine = "frontier"
) -> Found:
    """An order of the operations of a recording, checked."""
    start = time.monotonic()

    def expired() -> bool:
        return time.monotonic() - start > timeout_s

    try:
        known = partial_order(recording, stamps=timestamps)
    except ClocksClashError as found:
        return Found("unsat", Figures(build_seconds=time.monotonic() - start), why=found.what)
    problem = build_problem(known, recording, stamped=timestamps)
    conflicts = count_conflicts(known.cells, known.bounds, [np.zeros(len(ops), np.int64) for ops in known.threads])
    fraction = conflicts.ordered / conflicts.pairs if conflicts.pairs else 1.0
    figures = Figures(accesses=problem.accesses, ordered_fraction=fraction)
    try:
        done = saturate(problem, expired)
        figures = replace(figures, constraints_before=done.choices, constraints=done.candidates)
        figures = replace(figures, build_seconds=time.monotonic() - start)
        frontier = Frontier(problem, expired)
        figures = replace(figures, unknowns=frontier.unknowns)
        order = as_order(frontier.run())
    except Contradiction as found:
        cycle = describe_cycle([lane.ops for lane in problem.lanes], found.cycle, recording)
        why = f"no order explains the recording; each of these would be before the next: {cycle}"
        return Found("unsat", _timed(figures, start), why=why)
    except Stuck as found:
        return Found("timeout", _timed(figures, start), why=describe_stuck(problem, found, timeout_s))
    complaints = check_order(recording, steps_of(problem, order), *_exempt(problem))
    if complaints:
        why = f"internal error: the order that was found does not explain the trace ({complaints[0]})"
        return Found("unsupported", _timed(figures, start), problem, order, why)
    return Found("sat", _timed(figures, start), problem, order)


def as_order(trail: list[int]) -> tuple[Where, ...]:
    """Thread numbers as (thread, operation)."""
    position: dict[int, int] = {}
    order = []
    for t in trail:
        position[t] = position.get(t, -1) + 1
        order.append((t, position[t]))
    return tuple(order)


def steps_of(problem: Problem, order: tuple[Where, ...]) -> list[Step]:
    """The same as events and parts."""
    index = [lane.ops.index.tolist() for lane in problem.lanes]
    part = [lane.ops.part.tolist() for lane in problem.lanes]
    return [(t, index[t][i], part[t][i]) for t, i in order]


def _exempt(problem: Problem) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """The events that nothing recorded explains: reads, and calls."""
    external, relaxed = (
        {(t, int(problem.lanes[t].ops.index[i])) for t, i in where} for where in (problem.external, problem.relaxed)
    )
    return external, relaxed


def _timed(figures: Figures, start: float) -> Figures:
    spent = time.monotonic() - start
    build = figures.build_seconds or spent
    return replace(figures, build_seconds=build, solve_seconds=spent - build)


def describe_stuck(problem: Problem, stuck: Stuck, timeout_s: float) -> str:
    """Where the search could not go on."""
    t, i = stuck.blocked[0] if stuck.blocked else (0, 0)
    where = describe_cycle([lane.ops for lane in problem.lanes], ((t, i),), problem.recording).partition(" → ")[0]
    limit = f"within {timeout_s:g} s" if stuck.out_of_time else "within its budget of dead ends"
    return f"the search found no way past {where} {limit}"


def external_writes(trace: Trace, problem: Problem) -> tuple[str, ...]:
    """Reads that no recorded write explains, by what and where."""
    names = []
    for t, i in problem.external:
        event = problem.lanes[t].ops.events[i]
        place, site = trace.object_name(event), trace.location(event)
        what = str(place) if place else f"{int(event['size'])} bytes of memory without a name"
        where = f" ({site.file}:{site.line})" if site else ""
        names.append(f"{what}, first seen by thread {trace.threads[t].name}{where}")
    return tuple(names)
