"""From a trace to a schedule: order, saturate, search, check, reduce, write (ReCBuLC §4; DESIGN §5).

Nothing leaves here that an independent walk through the trace has not confirmed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from recbulc.calibration.model import Kind as IntervalKind
from recbulc.ordering.closure import Contradiction
from recbulc.ordering.conflicts import count_conflicts
from recbulc.ordering.events import Recording, recording_of
from recbulc.ordering.order import ClocksClashError, describe_cycle, partial_order
from recbulc.recorders.trace import Trace
from recbulc.schedule import Schedule
from recbulc.solver.check import Step, check_order, check_stamps
from recbulc.solver.conflict_order import Where, reduce_order, up_to_failure
from recbulc.solver.encode_terms import Before
from recbulc.solver.frontier import MOST_DEAD_ENDS, Frontier, Stuck
from recbulc.solver.problem import Problem, build_problem
from recbulc.solver.racing import Race, find_race
from recbulc.solver.saturate import saturate
from recbulc.solver.writing import write_schedule
from recbulc.solver.z3_windows import Clash, Windows, find_clash

Status = Literal["sat", "unsat", "timeout", "unsupported"]
Engine = Literal["frontier", "z3"]


@dataclass(frozen=True)
class Figures:
    """`unknowns`: operations whose place among conflicting ones is open after saturation. `constraints`: choices of a
    write for a read; before: of all writes to what it read, after: of those left by stamps, order and values.
    `windows`: how many stretches z3 settled, and `z3_seconds` how long it worked on those and others.
    """

    accesses: int = 0
    unknowns: int = 0
    constraints_before: int = 0
    constraints: int = 0
    build_seconds: float = 0.0
    solve_seconds: float = 0.0
    ordered_fraction: float = 0.0
    windows: int = 0
    z3_seconds: float = 0.0


@dataclass(frozen=True)
class Found:
    """An order of all operations that explains a recording, or why there is none and which operations `clash`."""

    status: Status
    figures: Figures
    problem: Problem | None = None
    order: tuple[Where, ...] = ()
    why: str = ""
    clash: tuple[Where, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Solution(Figures):
    """What came of a trace, with its figures.

    `external` names reads that no recorded write explains, `switches` counts those of the schedule between threads,
    `why` says what is in the way where there is no schedule.
    """

    status: Status
    schedule: Schedule | None = None
    external: tuple[str, ...] = ()
    switches: int = 0
    race: Race = field(default_factory=Race)
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
        return Solution(
            status="unsupported", why=f"the log of thread {lost[0]} could not grow: the rest of it is missing"
        )
    recording = recording_of(trace, interval)
    found = find_order(recording, timestamps=timestamps, timeout_s=timeout_s, engine=engine)
    solution = Solution(status=found.status, why=found.why + describe_sites(trace, found), **vars(found.figures))
    if found.status != "sat" or found.problem is None:
        return solution
    start = time.monotonic()
    signalled = trace.meta.verdict.how == "signal"
    reduced = reduce_order(found.problem, up_to_failure(found.problem, list(found.order), signalled=signalled))
    race = find_race(trace, found.problem, reduced)
    return replace(
        solution,
        schedule=write_schedule(trace, found.problem, reduced, race),
        race=race,
        external=external_writes(trace, found.problem),
        switches=reduced.switches,
        solve_seconds=solution.solve_seconds + time.monotonic() - start,
    )


def find_order(
    recording: Recording,
    *,
    timestamps: bool = True,
    timeout_s: float = 60.0,
    engine: Engine = "frontier",
    dead_ends: int = MOST_DEAD_ENDS,
) -> Found:
    """An order of the operations of a recording, checked.

    The frontier search hands a window to z3 after so many `dead_ends`; engine "z3" asks z3 for everything at once.
    """
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
        windows = Windows(frontier, start + timeout_s)
        way = windows.settle_all() if engine == "z3" else frontier.run(windows.settle, dead_ends)
    except Contradiction as found:
        fresh = replace(build_problem(known, recording, stamped=timestamps), external=problem.external)
        clash = find_clash(fresh, start + timeout_s)
        if clash and clash.facts:
            return _contradictory(fresh, clash, _timed(figures, start))
        cycle = describe_cycle([lane.ops for lane in problem.lanes], found.cycle, recording)
        why = f"no order explains the recording; each of these would be before the next: {cycle}"
        return Found("unsat", _timed(figures, start), problem, why=why, clash=found.cycle)
    except Clash as found:
        return _contradictory(problem, found, _timed(figures, start, windows))
    except Stuck as found:
        return Found("timeout", _timed(figures, start, windows), why=describe_stuck(problem, found, timeout_s))
    figures = _timed(figures, start, windows)
    if way is None:
        operations = sum(lane.required for lane in problem.lanes)
        return Found("timeout", figures, why=f"z3 found no order of {operations} operations within {timeout_s:g} s")
    order = as_order(way)
    steps = steps_of(problem, order)
    complaints = check_order(recording, steps, *_exempt(problem)) or (
        check_stamps(recording, steps) if timestamps else []
    )
    if complaints:
        why = f"internal error: the order that was found does not explain the trace ({complaints[0]})"
        return Found("unsupported", _timed(figures, start, windows), problem, order, why)
    return Found("sat", _timed(figures, start, windows), problem, order)


def _contradictory(problem: Problem, clash: Clash, figures: Figures) -> Found:
    why = f"no order explains the recording; {describe_clash(problem, clash)}"
    operations = tuple(dict.fromkeys(where for fact in clash.facts for where in fact.why))
    return Found("unsat", figures, problem, why=why, clash=operations)


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


def _timed(figures: Figures, start: float, windows: Windows | None = None) -> Figures:
    spent = time.monotonic() - start
    build = figures.build_seconds or spent
    figures = replace(figures, build_seconds=build, solve_seconds=spent - build)
    return replace(figures, windows=windows.count, z3_seconds=windows.seconds) if windows else figures


def describe_clash(problem: Problem, clash: Clash, most: int = 8) -> str:
    """Facts that have no order together, as few as z3 could name."""
    threads = [lane.ops for lane in problem.lanes]

    def name(where: Where) -> str:
        return describe_cycle(threads, (where,), problem.recording).partition(" → ")[0]

    texts = []
    for fact in clash.facts:
        if len(fact.why) == 1:
            t, i = fact.why[0]
            what = "what was seen by" if problem.lanes[t].reads[i] else "the result of"
            texts.append(f"{what} {name(fact.why[0])}")
        elif fact.why:
            relation = " is before " if isinstance(fact.term, Before) else " excludes "
            texts.append(relation.join(name(where) for where in fact.why))
    if not texts:
        return "there was no time to find out which facts clash"
    rest = f"; and {len(texts) - most} more" if len(texts) > most else ""
    return f"these facts clash: {'; '.join(dict.fromkeys(texts[:most]))}{rest}"


def describe_sites(trace: Trace, found: Found) -> str:
    """Where in the program the operations of a clash stand."""
    if found.problem is None:
        return ""
    sites = (trace.location(found.problem.lanes[t].ops.events[i]) for t, i in found.clash)
    places = dict.fromkeys(f"{site.file}:{site.line}" for site in sites if site)
    return f" (at {', '.join(places)})" if places else ""


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
