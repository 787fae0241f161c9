"""Make sure of the racing pair: what the trace alone cannot show, runs of the program can."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from recbulc.recorders.clocks import ClockWatch
from recbulc.recorders.events import Kind
from recbulc.recorders.provoke import Mixed
from recbulc.recorders.record import Request, record
from recbulc.recorders.trace import Trace
from recbulc.recorders.verdict import FailIf
from recbulc.replay.flip import find_decisive
from recbulc.replay.replay import recorded_launch
from recbulc.schedule import Access, Schedule, ShownBy
from recbulc.solver.racing import Race

PASSING_RUNS = 5
WRITES = (Kind.WRITE, Kind.RMW)
OWNER = re.compile(r", [\d.]+, \d+⟩")  # of a block: which thread allocated it differs from run to run


def explain(
    schedule: Schedule, race: Race, clocks: ClockWatch, seconds: float, note: Callable[[str], None] = lambda _: None
) -> Schedule:
    """The schedule with the racing pair as runs have shown it, as far as they do within this time."""
    if race.certain:
        return schedule
    if race.half:
        note("looking in passing runs for what the failing one never came to")
        other = find_counterpart(schedule, race.half, clocks)
        if other:
            return msgspec.structs.replace(schedule, racing=(race.half, other), shown_by=ShownBy.PASSING_RUN)
    decisive = find_decisive(schedule, race.candidates, seconds)
    if decisive:
        return msgspec.structs.replace(schedule, racing=decisive.racing, shown_by=ShownBy.FLIP)
    return schedule


def find_counterpart(schedule: Schedule, half: Access, clocks: ClockWatch) -> Access | None:
    """The first write, in a run that passes, to what the failing run read too early."""
    if not half.object:
        return None
    with tempfile.TemporaryDirectory(prefix="recbulc-passing-") as folder:
        for run in range(PASSING_RUNS):
            request = Request(
                launch=recorded_launch(schedule),
                out=Path(folder) / f"{run}.trace",
                fail_if=FailIf.parse(schedule.verdict.fail_if),
                timeout_s=schedule.timeout_s,
            )
            trace = record(request, clocks.one_core(), Mixed(run, "plain")).trace
            if not trace.meta.verdict.failed:
                return _first_write(trace, schedule, half)
    return None


def _first_write(trace: Trace, schedule: Schedule, half: Access) -> Access | None:
    wanted = OWNER.sub("⟩", half.object)
    found = []
    for number, events in enumerate(trace.events):
        for event in events[[kind in WRITES for kind in events["kind"].tolist()]]:
            place, site = trace.object_name(event), trace.location(event)
            if place and site and OWNER.sub("⟩", str(place)) == wanted:
                found.append((int(event["before"]), number, site))
                break
    if not found:
        return None
    _, number, site = min(found, key=lambda entry: entry[0])
    thread = trace.threads[number].name
    if thread == half.thread:  # there the roles were swapped
        others = [other.name for other in schedule.threads if other.name != half.thread]
        thread = others[-1] if others else thread
    return Access(site.file, site.line, thread, "write", object=half.object, function=site.function)
