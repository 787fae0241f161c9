"""Make sure of the racing pair: what the trace alone cannot show, runs of the program can."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from recbulc.recorders.clocks import ClockWatch
from recbulc.recorders.events import Kind
from recbulc.recorders.provoke import Mixed
from recbulc.recorders.record import Request, record
from recbulc.recorders.trace import Trace
from recbulc.recorders.verdict import FailIf
from recbulc.replay.flip import find_decisive
from recbulc.replay.replay import recorded_launch
from recbulc.schedule import Access, Op, Schedule, ShownBy
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
    """The write that comes before the read, in a run that passes, to what the failing run read too early."""
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
            recorded = record(request, clocks.one_core(), Mixed(run, "plain"))
            if recorded.interrupted:
                raise KeyboardInterrupt
            if not recorded.trace.meta.verdict.failed:
                return _write_before(recorded.trace, schedule, half)
    return None


def _write_before(trace: Trace, schedule: Schedule, half: Access) -> Access | None:
    """To the same object, the last before it is read where the failing run read it; one core has stamped all."""
    wanted = OWNER.sub("⟩", half.object)
    written, read = [], []
    for number, events in enumerate(trace.events):
        for event in events[np.isin(events["kind"], (*WRITES, Kind.READ))]:
            place, site = trace.object_name(event), trace.location(event)
            if not place or not site or OWNER.sub("⟩", str(place)) != wanted:
                continue
            if event["kind"] in WRITES:
                written.append((int(event["before"]), number, site))
            elif (site.file, site.line) == (half.file, half.line):
                read.append(int(event["before"]))
    before = [entry for entry in written if read and entry[0] < min(read)]
    if not before:
        return None
    _, number, site = max(before, key=lambda entry: entry[0])
    thread = trace.threads[number].name
    if thread == half.thread:  # there the roles were swapped
        others = [other for other in schedule.threads if other.name != half.thread]
        there = [other for other in others if any(_function(schedule, op) == site.function for op in other.ops)]
        busiest = max(there or others, key=lambda other: len(other.ops), default=None)
        thread = busiest.name if busiest else thread
    return Access(site.file, site.line, thread, "write", object=half.object, function=site.function)


def _function(schedule: Schedule, op: Op) -> str:
    return schedule.sites[op.site].function if op.site >= 0 else ""
