"""Enforce a schedule on the real program, as often as asked, and say how often it failed the recorded way.

A run counts as failed only if it ended as the recorded one did *and* never left the schedule: a random failure is no
reproduction (DESIGN §6).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from recbulc.errors import InputError, MachineError
from recbulc.recorders.control import MOST_CORES, ControlPage, Mode, Setting
from recbulc.recorders.runner import Launch, OnOutput, Runner, RunResult
from recbulc.recorders.verdict import FailIf, describe
from recbulc.replay.compile import Compiled, compile_schedule
from recbulc.replay.divergence import Divergence, Locate, Namer, positions_of
from recbulc.replay.rebuild import Rebuilt, first_lacking
from recbulc.schedule import Schedule, Verdict, build_id_of

LEAST_TIMEOUT_S = 10.0  # of runs that are not to time out: gates cost time on a busy machine

Word = Literal["failed", "passed", "diverged", "unreachable"]


@dataclass(frozen=True)
class ReplayRun:
    """One run: its verdict, whether the schedule led to the recorded one, and where the run left the schedule."""

    verdict: Verdict
    failed: bool
    divergence: Divergence | None
    seconds: float

    @property
    def word(self) -> Word:
        """What became of it."""
        if self.failed:
            return "failed"
        if self.divergence is not None and not self.divergence.followed:
            return "diverged"
        return "passed"


@dataclass(frozen=True)
class ReplayResult:
    """All runs of a schedule; none where another build lacks a place that it names (first_divergence says which)."""

    runs: int
    failed: int
    diverged: int
    first_divergence: Divergence | None
    verdicts: tuple[ReplayRun, ...]
    rebuilt: bool = False

    @property
    def verdict(self) -> Word:
        """`failed` when all did; else what the others did, the worst first."""
        words = {run.word for run in self.verdicts}
        if not words:
            return "unreachable"
        if words == {"failed"} or ("failed" in words and self.rebuilt):
            return "failed"
        if "diverged" in words:
            return "unreachable" if self.rebuilt else "diverged"
        return "passed"


OnRun = Callable[[ReplayRun], None]
Enough = Callable[[Sequence[ReplayRun]], bool]  # may more runs be spared after these?


class Replayer:
    """Runs one schedule; what all runs share is prepared once."""

    def __init__(self, schedule: Schedule, *, rebuilt: Rebuilt | None = None, library: Path | None = None) -> None:
        self.schedule = schedule
        self.launch = rebuilt.launch if rebuilt else recorded_launch(schedule)
        self.compiled: Compiled = compile_schedule(schedule, rebuilt.numbers if rebuilt else None)
        self.numbers = rebuilt.numbers if rebuilt else {i: site.number for i, site in enumerate(schedule.sites)}
        self._namer = Namer(schedule, self.compiled.lists, rebuilt.locate if rebuilt else _recorded_sites(schedule))
        self._fail_if = FailIf.parse(schedule.verdict.fail_if)
        self._directory = tempfile.TemporaryDirectory(prefix="recbulc-replay-")
        self._schedule_file = Path(self._directory.name) / "schedule"
        self._schedule_file.write_bytes(self.compiled.content)
        self._runner = Runner(self.launch, library=library)
        self._runs = 0

    def __enter__(self) -> Replayer:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.close()
        self._directory.cleanup()

    @property
    def timeout_s(self) -> float:
        """Of one run."""
        timeout = self.schedule.timeout_s
        return timeout if self.schedule.verdict.how == "timeout" else max(timeout, LEAST_TIMEOUT_S)

    def page(self) -> ControlPage:
        """A fresh control page for the next run."""
        self._runs += 1
        cores = tuple(sorted(os.sched_getaffinity(0)))[:MOST_CORES]
        setting = Setting(mode=Mode.REPLAY, cores=cores, pin=False, schedule=self._schedule_file)
        return ControlPage.create(Path(self._directory.name) / f"control-{self._runs}", setting)

    def run(self, on_output: OnOutput | None = None) -> ReplayRun:
        """Once."""
        page = self.page()
        result = self._runner.run(page, timeout_s=self.timeout_s, on_output=on_output)
        if not page.ready:
            said = result.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise MachineError(
                f"{self.launch.program} ended before its main ({describe(result)}){': ' + said if said else ''}",
                "is it a dynamically linked program that LD_PRELOAD works on?",
            )
        outcome = self._judge(page, result)
        page.path.unlink()
        return outcome

    def divergence(self, row: npt.NDArray[np.void]) -> Divergence:
        """The control page's, in words."""
        return self._namer.divergence(row)

    def short_of_end(self, positions: Mapping[str, int]) -> Divergence | None:
        """What was not reached, of a run that stopped just before its recorded end (in a debugger); None: nothing."""
        return self._namer.still(positions, "the run was stopped", but_signal=True)

    def _judge(self, page: ControlPage, result: RunResult) -> ReplayRun:
        row = page.divergence()
        if row is not None:
            divergence: Divergence | None = self._namer.divergence(row)
        else:
            divergence = self._namer.still(positions_of(result.threads), describe(result))
        verdict = self._fail_if.judge(result, self.launch)
        failed = divergence is None and self._as_recorded(verdict)
        return ReplayRun(verdict, failed, divergence, result.seconds)

    def _as_recorded(self, verdict: Verdict) -> bool:
        recorded = self.schedule.verdict
        if not recorded.failed:
            return verdict.failed
        if verdict.how != recorded.how:
            return False
        if verdict.how in {"exit", "signal"}:
            return verdict.code == recorded.code
        if verdict.how == "deadlock":
            there = {(name, kind, self.numbers.get(site, -1)) for name, kind, site in recorded.blocked}
            return set(verdict.blocked) == there
        return True


def replay(
    schedule: Schedule,
    times: int,
    on_run: OnRun | None = None,
    *,
    rebuilt: Rebuilt | None = None,
    on_output: OnOutput | None = None,
    enough: Enough = lambda _: False,
    library: Path | None = None,
) -> ReplayResult:
    """Run it `times` times; `rebuilt` is another build of the program (see recbulc.replay.rebuild)."""
    if times < 1:
        raise InputError(f"{times} replays", "give --times a number from 1")
    if rebuilt and (lacking := first_lacking(schedule, rebuilt.numbers)):
        missing = Namer(schedule, (), rebuilt.locate).lacking(lacking.thread, lacking.position, lacking.op)
        return ReplayResult(runs=0, failed=0, diverged=0, first_divergence=missing, verdicts=(), rebuilt=True)
    runs: list[ReplayRun] = []
    with Replayer(schedule, rebuilt=rebuilt, library=library) as replayer:
        for _ in range(times):
            runs.append(replayer.run(on_output))
            if on_run:
                on_run(runs[-1])
            if enough(runs):
                break
    diverged = [run.divergence for run in runs if run.divergence]
    return ReplayResult(
        runs=len(runs),
        failed=sum(run.failed for run in runs),
        diverged=len(diverged),
        first_divergence=diverged[0] if diverged else None,
        verdicts=tuple(runs),
        rebuilt=rebuilt is not None,
    )


def recorded_launch(schedule: Schedule) -> Launch:
    """The program that was recorded, and no other."""
    program = Path(schedule.program)
    elsewhere = "replay on another build with `-- PROG ARGS`"
    if not program.is_file():
        raise InputError(f"the program that was recorded is gone: {program}", f"build it again, or {elsewhere}")
    if not Path(schedule.cwd).is_dir():
        raise InputError(f"the directory that it was recorded in is gone: {schedule.cwd}", f"make it, or {elsewhere}")
    if build_id_of(program) != schedule.build_id:
        raise InputError(
            f"{program} is not the build that was recorded",
            f"record again, or replay on this build with `-- {program} ARGS`",
        )
    return Launch(program, schedule.argv, schedule.env, Path(schedule.cwd), schedule.stdin)


def _recorded_sites(schedule: Schedule) -> Locate:
    sites = {site.number: site for site in schedule.sites}
    return sites.get
