"""All stages in a row: record until it fails, order, solve, replay (ReCBuLC Fig. 1). The one module that knows them.

Every stage can be the last: `Reproduction.stopped_at` and `why` say which and why, and everything found before is kept.
A recording that cannot be solved or replayed is not the end where the budget allows for another.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

from recbulc.errors import InputError, RecbulcError
from recbulc.ordering.events import recording_of
from recbulc.ordering.order import OrderReport, order
from recbulc.recorders.build import run_compiler
from recbulc.recorders.clocks import ClockWatch
from recbulc.recorders.control import Level
from recbulc.recorders.provoke import Mixed, Plan
from recbulc.recorders.record import Recorded, Request, has_sites, record
from recbulc.recorders.runner import Launch
from recbulc.recorders.trace import is_trace
from recbulc.recorders.verdict import FailIf
from recbulc.replay.explain import explain
from recbulc.replay.replay import ReplayResult, ReplayRun, replay
from recbulc.schedule import Schedule, Verdict, is_schedule
from recbulc.solver.solve import Solution, solve

PROGRAM = "program"
TRACE = re.compile(r"trace(-\d)?")
SCHEDULE = re.compile(r"schedule(-\d)?\.json")
PARTIAL = re.compile(rf"\.({PROGRAM}|{TRACE.pattern})\.\d+\.partial")  # of a recbulc that was killed
CXX_ENDINGS = frozenset({".cc", ".cpp", ".cxx", ".c++", ".C"})
SOURCE_ENDINGS = CXX_ENDINGS | {".c"}
COMPILE = ("-g", "-O1", "-pthread")

MOST_RUNS = 10_000_000  # the budget ends recording long before
MOST_RECORDINGS = 3
SHARE_TO_RECORD = 0.8  # of the budget; the rest is for solving and replaying
LEAST_SOLVE_S = 10.0
OVERRUN = 0.25  # of the budget, for replays that have all failed so far
INTERRUPTED = "interrupted"
LEAST_EXPLAIN_S = 5.0
MOST_EXPLAIN_S = 30.0
TRIAL = 3  # replays of which one must fail before we make all

Stage = Literal["record", "order", "solve", "replay"]


@dataclass(frozen=True)
class Task:
    """What is to be reproduced, and how much may be spent on it."""

    launch: Launch
    out: Path
    fail_if: FailIf
    budget_s: float
    timeout_s: float
    times: int
    seed: int
    level: Level | None = None


@dataclass(frozen=True)
class Reproduction:
    """What was found, as far as it went; `stopped_at` None: every replay failed the recorded way."""

    task: Task
    recorded: Recorded | None = None
    ordered: OrderReport | None = None
    solution: Solution | None = None
    schedule_path: Path | None = None
    replayed: ReplayResult | None = None
    runs: int = 0  # recorded for it, in all
    record_seconds: float = 0.0  # of these runs, without the clocks
    interrupted: bool = False
    stopped_at: Stage | None = None
    why: str = ""
    remedy: str = ""

    @property
    def verdict(self) -> Verdict | None:
        """How the recorded run ended."""
        return self.recorded.trace.meta.verdict if self.recorded else None

    @property
    def schedule(self) -> Schedule | None:
        """What makes it fail."""
        return self.solution.schedule if self.solution else None

    def stop(self, stage: Stage, why: str, remedy: str) -> Reproduction:
        """End here."""
        return replace(self, stopped_at=stage, why=why, remedy=remedy)


class Listener(Protocol):
    """Who shows how it goes."""

    def note(self, text: str) -> None:
        """A remark."""

    def begins(self, stage: Stage) -> None:
        """A stage begins."""

    def ran(self, run: int, plan: Plan, verdict: Verdict) -> None:
        """One more run is recorded."""

    def replayed(self, run: ReplayRun) -> None:
        """One more replay."""

    def ended(self, stage: Stage, found: Reproduction) -> None:
        """A stage has ended; what it found is in `found`."""


def reproduce(task: Task, clocks: ClockWatch, listener: Listener) -> Reproduction:
    """Everything, up to the first stage that cannot; bad input and unfit machines are raised as errors.

    Ctrl-C ends the stage it comes in; before anything is recorded it is raised.
    """
    check_out(task.out)
    with made(task.out):
        return _all_attempts(task, clocks, listener)


def _all_attempts(task: Task, clocks: ClockWatch, listener: Listener) -> Reproduction:
    attempt = _Attempt(task, clocks, listener)
    found = attempt.make(0)
    for number in range(1, MOST_RECORDINGS):
        again = found.stopped_at in {"order", "solve", "replay"} and attempt.may_record_again()
        if found.interrupted or not again:
            break
        listener.note(f"{found.why}: trying another recording")
        another = attempt.make(number)
        if another.stopped_at == "record":  # nothing new: what we had says more
            return replace(
                found, runs=another.runs, record_seconds=another.record_seconds, interrupted=another.interrupted
            )
        found = another
    return found


class _Attempt:
    """The stages for one recording after the other, within one budget."""

    def __init__(self, task: Task, clocks: ClockWatch, listener: Listener) -> None:
        self._task = task
        self._clocks = clocks
        self._listener = listener
        self._deadline = time.monotonic() + task.budget_s
        self._runs = 0
        self._runs_s = 0.0
        self._spent_s = 0.0  # on recording, the clocks included

    def _left_to_record_s(self) -> float:
        mine = SHARE_TO_RECORD * self._task.budget_s
        reserved = self._task.budget_s - mine
        return min(mine - self._spent_s, self._deadline - time.monotonic() - reserved)

    def may_record_again(self) -> bool:
        """Is there time for another?"""
        return self._left_to_record_s() > self._task.timeout_s

    def make(self, number: int) -> Reproduction:
        """All stages for recording `number`, from 0."""
        suffix = f"-{number + 1}" if number else ""
        trace, schedule = self._task.out / f"trace{suffix}", self._task.out / f"schedule{suffix}.json"
        found = self._stage("record", self._record(trace, self._task.seed + number))
        if found.stopped_at is None:
            found = self._stage("order", self._order(found))
        if found.stopped_at is None:
            found = self._stage("solve", self._solve(found, schedule))
        if found.stopped_at is None:
            found = self._stage("replay", self._replay(found))
        return found

    def _stage(self, stage: Stage, found: Reproduction) -> Reproduction:
        self._listener.ended(stage, found)
        return found

    def _record(self, trace: Path, seed: int) -> Reproduction:
        task = self._task
        started = time.monotonic()
        request = Request(
            launch=task.launch,
            out=trace,
            fail_if=task.fail_if,
            timeout_s=task.timeout_s,
            level=task.level,
            until_fail=MOST_RUNS,
            seed=seed,
            budget_s=max(self._left_to_record_s(), 0.0),
        )
        recorded = record(
            request,
            self._clocks,
            Mixed(seed),
            on_start=lambda: self._listener.begins("record"),
            on_run=self._listener.ran,
            note=self._listener.note,
        )
        if trace.name == "trace":  # of the first attempt: what an earlier reproduction left is out of date now
            clear_out(task.out, {trace.name})
        self._runs += recorded.runs
        self._runs_s += recorded.seconds
        self._spent_s += time.monotonic() - started
        found = Reproduction(task, recorded, runs=self._runs, record_seconds=self._runs_s)
        if recorded.interrupted:
            solvable = recorded.trace.meta.verdict.failed
            return replace(found, interrupted=True).stop(
                "record", INTERRUPTED, f"the recorded run failed: `recbulc solve {trace}`" if solvable else ""
            )
        if recorded.trace.meta.verdict.failed:
            return found
        runs = "1 run" if recorded.runs == 1 else f"{recorded.runs} runs"
        if len(recorded.trace.threads) == 1:
            return found.stop(
                "record",
                f"none of {runs} failed, and the program never starts a second thread",
                "give it the arguments or the input with which its threads run",
            )
        return found.stop(
            "record",
            f"none of {runs} in {recorded.seconds:.0f} s failed",
            "give a longer --budget, another --seed, arguments or an input that make the failure likelier, or say with "
            "--fail-if what its failing is",
        )

    def _order(self, found: Reproduction) -> Reproduction:
        assert found.recorded
        try:
            self._listener.begins("order")
            return replace(found, ordered=order(recording_of(found.recorded.trace)))
        except KeyboardInterrupt:
            return _interrupted(found, "order", f"go on with `recbulc solve {found.recorded.trace.path}`")
        except RecbulcError as error:
            return found.stop("order", error.what, error.remedy)

    def _solve(self, found: Reproduction, path: Path) -> Reproduction:
        assert found.recorded
        trace = found.recorded.trace
        left_s = max(self._deadline - time.monotonic(), LEAST_SOLVE_S)
        try:
            self._listener.begins("solve")
            solution = solve(trace, timeout_s=left_s)
        except KeyboardInterrupt:
            return _interrupted(found, "solve", f"go on with `recbulc solve {trace.path}`")
        found = replace(found, solution=solution)
        if solution.schedule is None:
            remedies = {
                "unsat": f"see `recbulc trace {trace.path}`; calibrate (`recbulc calibrate`) and try again",
                "timeout": "give a longer --budget, or a smaller input to the program",
                "unsupported": "record at level RW, with room on the disk",
            }
            return found.stop("solve", f"{solution.status}: {solution.why}", remedies.get(solution.status, ""))
        solution.schedule.save(path)
        return replace(found, schedule_path=path)

    def _replay(self, found: Reproduction) -> Reproduction:
        assert found.schedule
        try:
            self._listener.begins("replay")
            result = replay(found.schedule, self._task.times, self._listener.replayed, enough=self._enough)
        except KeyboardInterrupt:
            return _interrupted(found, "replay", f"go on with `recbulc replay {found.schedule_path}`")
        found = replace(found, replayed=result)
        if result.failed == result.runs == self._task.times:
            try:
                return self._explain(found)
            except KeyboardInterrupt:
                return replace(found, interrupted=True)
        if result.failed == result.runs:
            return found.stop(
                "replay",
                f"the budget is used up after {result.runs} of {self._task.times} replays; all of them failed",
                f"give a longer --budget, or go on with `recbulc replay {found.schedule_path}`",
            )
        if result.first_divergence:
            why = f"{result.diverged} of {result.runs} replays left the schedule: {result.first_divergence.message}"
        else:
            why = f"{result.runs - result.failed} of {result.runs} replays followed the schedule and ended otherwise"
        return found.stop("replay", why, f"see it run: `recbulc replay -v {found.schedule_path}`")

    def _explain(self, found: Reproduction) -> Reproduction:
        """Make sure of the racing pair; what remains of the budget, but some seconds in any case, is for that."""
        assert found.solution
        assert found.schedule
        assert found.schedule_path
        left_s = min(max(self._deadline - time.monotonic(), LEAST_EXPLAIN_S), MOST_EXPLAIN_S)
        schedule = explain(found.schedule, found.solution.race, self._clocks, left_s, self._listener.note)
        schedule.save(found.schedule_path)
        return replace(found, solution=replace(found.solution, schedule=schedule))

    def _enough(self, runs: Sequence[ReplayRun]) -> bool:
        """Nothing fails, or the time is up; it may be overrun a little where all have failed so far."""
        failed = sum(run.failed for run in runs)
        if failed < len(runs):
            return (len(runs) >= TRIAL and failed == 0) or time.monotonic() > self._deadline
        return time.monotonic() > self._deadline + OVERRUN * self._task.budget_s


def _interrupted(found: Reproduction, stage: Stage, remedy: str) -> Reproduction:
    return replace(found, interrupted=True).stop(stage, INTERRUPTED, remedy)


def check_out(out: Path) -> None:
    """Say before the work that results cannot go there; a directory that we made before is used again."""
    if not out.parent.is_dir():
        raise InputError(f"{out.parent} is no directory", "create it, or choose another --out")
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is there and is no directory", "choose another --out")
    where = out if out.exists() else out.parent
    if not os.access(where, os.R_OK | os.W_OK | os.X_OK):
        raise InputError(f"cannot write to {where}", "choose another --out")
    foreign = [path for path in sorted(out.iterdir()) if not _is_ours(path)] if out.exists() else []
    if foreign:
        raise InputError(f"{out} holds other things, such as {foreign[0].name}", "choose another --out")


def _is_ours(path: Path) -> bool:
    """May we replace it?"""
    if PARTIAL.fullmatch(path.name):
        return True
    if TRACE.fullmatch(path.name):
        return path.is_dir() and (is_trace(path) or not any(path.iterdir()))
    if SCHEDULE.fullmatch(path.name):
        return path.is_file() and is_schedule(path)
    return path.name == PROGRAM and path.is_file() and has_sites(path)


def clear_out(out: Path, but: Set[str]) -> None:
    """Remove the traces and schedules of an earlier reproduction."""
    try:
        for path in out.iterdir():
            if path.name in but or path.name == PROGRAM:
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
    except OSError as error:
        raise InputError(f"cannot write to {out}: {error.strerror}", "choose another --out") from error


@contextlib.contextmanager
def made(out: Path) -> Iterator[None]:
    """The directory of results; it does not stay if nothing comes into it."""
    try:
        out.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make {out}: {error.strerror}", "choose another --out") from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            out.rmdir()  # refused where something is in it


def check_sources(sources: Sequence[Path]) -> None:
    """Are these C or C++ files?"""
    for source in sources:
        if source.suffix not in SOURCE_ENDINGS:
            raise InputError(
                f"{source} is no C or C++ source", f"to run it as a program, write `recbulc reproduce -- {source}`"
            )
        if not source.is_file():
            raise InputError(f"there is no source file {source}", "programs stand behind --, sources before it")


def _input(source: Path, *, as_c: bool) -> list[str]:
    """As the compiler is to be told of it: one for C++ would take .c for C++."""
    return ["-x", "c", str(source), "-x", "none"] if as_c else [str(source)]


def build_sources(sources: Sequence[Path], out: Path, options: Sequence[str] = ()) -> Path:
    """Compile and link with our wrapper into the directory of results; clang itself says what is wrong with them."""
    check_sources(sources)
    check_out(out)
    cxx = any(source.suffix in CXX_ENDINGS for source in sources)
    inputs = [word for source in sources for word in _input(source, as_c=cxx and source.suffix not in CXX_ENDINGS)]
    new, program = out / f".{PROGRAM}.{os.getpid()}.partial", out / PROGRAM
    with made(out):
        try:
            code = run_compiler([*COMPILE, *inputs, *options, "-o", str(new)], cxx=cxx)
            if code or not os.access(new, os.X_OK):
                names = ", ".join(map(str, sources))
                ended = f"clang exits with {code}" if code else "no program comes out"
                raise InputError(f"{names} cannot be compiled ({ended})", "see what clang says above, and --cflags")
            new.replace(program)
        except OSError as error:
            raise InputError(f"cannot write {program}: {error.strerror}", "choose another --out") from error
        finally:
            new.unlink(missing_ok=True)
    return program.resolve()
