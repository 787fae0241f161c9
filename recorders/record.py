"""Run a program, once or until it fails, and keep the run as a trace (ReCBuLC §5).

Recording goes to a directory beside the wanted one, which gets its name when all is written. What recbulc leaves there
when it is itself killed can still be read.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import math
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from recbulc.calibration.model import write_whole
from recbulc.errors import InputError, MachineError
from recbulc.recorders.clocks import ClockWatch
from recbulc.recorders.control import CHUNK_BYTES, ControlPage, Level, Mode, Setting
from recbulc.recorders.events import EVENT, Kind
from recbulc.recorders.meta import Meta, TraceClocks, TraceSites
from recbulc.recorders.provoke import Plan, Portfolio
from recbulc.recorders.runner import Launch, OnOutput, Runner, RunResult
from recbulc.recorders.sitetable import load_site_table
from recbulc.recorders.trace import (
    CHECKSUMS_FILE,
    CONTROL_FILE,
    Trace,
    checksums_of,
    describe_threads,
    is_trace,
    log_path,
    read_modules,
    used_records,
)
from recbulc.recorders.verdict import FailIf
from recbulc.schedule import Verdict

ACCESSES = (Kind.READ, Kind.WRITE, Kind.RMW)
UNFINISHED = "recbulc ended before the recording did"
INTERRUPTED = "interrupted"
OnRun = Callable[[int, Plan, Verdict], None]


@dataclass(frozen=True)
class Request:
    """What is to be recorded. `until_fail` 0: one run, whatever becomes of it."""

    launch: Launch
    out: Path
    fail_if: FailIf
    timeout_s: float
    level: Level | None = None  # None: RW, if the program has sites for it
    stamp: str = "2e"
    pin: bool = True
    until_fail: int = 0
    seed: int = 0
    budget_s: float | None = None  # for the clocks and all runs together; one run is always made


@dataclass(frozen=True)
class Recorded:
    """A trace and how it came about."""

    trace: Trace
    runs: int
    seconds: float  # of all runs, without the clocks
    result: RunResult
    interrupted: bool


def record(
    request: Request,
    clocks: ClockWatch,
    portfolio: Portfolio,
    *,
    on_start: Callable[[], None] = lambda: None,
    on_run: OnRun = lambda *_: None,
    on_output: OnOutput | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> Recorded:
    """Record one run, or the first that fails; where none fails within the bounds, the last one.

    `on_start` is called when the clocks are known and the runs begin.
    """
    level = check_level(request.launch.program, request.level)
    check_out(request.out)
    if not request.pin and request.stamp not in {"2e", "card"}:
        raise InputError(f"stamp {request.stamp} does not tell the core it was taken on", "without --no-pin, or use 2e")
    began = time.monotonic()
    clocks.begin(note)
    deadline = math.inf if request.budget_s is None else began + request.budget_s - clocks.check_seconds
    work = request.out.parent / f".{request.out.name}.{os.getpid()}.partial"
    try:
        work.mkdir()
    except OSError as error:
        raise InputError(f"cannot make {work}: {error.strerror}", "choose another --out") from error
    draft = _draft(request, level, clocks)
    written = False
    try:
        _write(work / "meta.json", draft)
        on_start()
        with Runner(request.launch) as runner:
            runs = _Runs(request, level, clocks.cores, portfolio, runner, work)
            runs.make(on_run, on_output, deadline)
        known = _checked_again(clocks, runs, note)
        with _writing(work):
            _finish(work, draft, runs, known)
        written = True
        _publish(work, request.out)
    finally:
        if not written:
            shutil.rmtree(work, ignore_errors=True)
    return Recorded(Trace.load(request.out), runs.made, runs.seconds, runs.last(), runs.interrupted)


def _checked_again(clocks: ClockWatch, runs: _Runs, note: Callable[[str], None]) -> TraceClocks:
    """The clocks after the recording; a user who cannot wait for that keeps what is recorded."""
    try:
        return clocks.end(note)
    except KeyboardInterrupt:
        runs.interrupted = True
        return clocks.unchecked()


class _Runs:
    """The runs of one request, in one directory; the last of them is what is kept."""

    def __init__(
        self, request: Request, level: Level, cores: tuple[int, ...], portfolio: Portfolio, runner: Runner, work: Path
    ) -> None:
        self._request = request
        self._portfolio = portfolio
        self._runner = runner
        self._work = work
        self._level = level
        self._cores = cores
        self.made = 0
        self.seconds = 0.0
        self.interrupted = False
        self.plan = Plan("plain", portfolio.plan(0).knobs)
        self.page: ControlPage | None = None
        self.result: RunResult | None = None
        self.verdict = Verdict("passed", fail_if=request.fail_if.texts, detail=INTERRUPTED)

    def make(self, on_run: OnRun, on_output: OnOutput | None, deadline: float = math.inf) -> None:
        """Run until a run fails, or the runs or the time are used up, or the user has seen enough."""
        request, started = self._request, time.monotonic()
        try:
            for run in range(max(request.until_fail, 1)):
                self._once(run if request.until_fail else run + 1, on_output)
                on_run(self.made, self.plan, self.verdict)
                if self.verdict.failed or time.monotonic() >= deadline:
                    break
        except KeyboardInterrupt:
            if not any(self._work.glob("*.events")):
                raise
            self.interrupted = True
        self.seconds = time.monotonic() - started

    def _once(self, run: int, on_output: OnOutput | None) -> None:
        request = self._request
        for log in self._work.glob("*.events"):  # of the run before
            log.unlink()
        self.plan = self._portfolio.plan(run)
        setting = Setting(
            mode=Mode.RECORD,
            level=self._level,
            stamp=request.stamp,
            cores=self._cores,
            pin=request.pin,
            chunk_bytes=CHUNK_BYTES,
            knobs=self.plan.knobs,
            directory=self._work,
        )
        self.result = None
        self.verdict = Verdict("passed", fail_if=request.fail_if.texts, detail=INTERRUPTED)
        with _writing(self._work):
            self.page = ControlPage.create(self._work / CONTROL_FILE, setting)
        self.made += 1
        self.result = self._runner.run(self.page, timeout_s=request.timeout_s, on_output=on_output)
        self._require_runtime(self.page, self.result)
        self.verdict = request.fail_if.judge(self.result, request.launch)
        if self.plan.strategy == "plain" and request.until_fail and not self.verdict.failed:
            self._portfolio.learn(self.plan, self.result, *count_events(self._work, len(self.result.threads)))

    def _require_runtime(self, page: ControlPage, result: RunResult) -> None:
        if page.ready or len(result.threads):
            return
        said = result.stderr.decode(errors="replace").strip().splitlines()
        raise MachineError(
            f"{self._request.launch.program} ran without the runtime" + (f": {said[-1]}" if said else ""),
            "programs that are linked statically or change their user (setuid) cannot be recorded",
        )

    def last(self) -> RunResult:
        """The last run; a made-up one where the user interrupted it."""
        if self.result is not None:
            return self.result
        assert self.page is not None
        return RunResult("timeout", 0, 0.0, b"", b"", self.page.threads())


def has_sites(program: Path) -> bool:
    """Did our wrapper build it?"""
    try:
        with program.open("rb") as file:
            return ELFFile(file).get_section_by_name("recbulc_sites") is not None
    except OSError as error:
        raise InputError(f"cannot read {program}: {error.strerror}", "name a program you may read") from error
    except ELFError as error:
        raise InputError(
            f"{program} is no executable in ELF format", "name the program itself, not a script that starts it"
        ) from error


def check_level(program: Path, wanted: Level | None) -> Level:
    """The level to record; only SYNC is there for programs that our wrapper did not build."""
    ours = has_sites(program)
    if not ours and wanted is not Level.SYNC:
        raise InputError(
            f"{program.name} was not built by `recbulc cc`: only its synchronisation can be recorded",
            "build it with CC='recbulc cc' CXX='recbulc c++', or record with --level SYNC",
        )
    return wanted or Level.RW


def check_out(out: Path) -> None:
    """Say before the work that a trace cannot be written; nothing but an earlier trace is ever replaced."""
    if not out.parent.is_dir():
        raise InputError(f"{out.parent} is no directory", "create it, or choose another --out")
    if not os.access(out.parent, os.W_OK | os.X_OK):
        raise InputError(f"cannot write to {out.parent}", "choose another --out")
    empty = out.is_dir() and not any(out.iterdir())
    if out.exists() and not empty and not is_trace(out):
        raise InputError(f"{out} is there and is no trace", "choose another --out, or remove it first")


def count_events(path: Path, threads: int) -> tuple[int, int]:
    """(accesses, other events) of a run that has just ended."""
    accesses = total = 0
    for number in range(threads):
        used = used_records(log_path(path, number))
        if used:
            kinds = np.memmap(log_path(path, number), dtype=EVENT, mode="r", shape=(used,))["kind"]
            accesses += int(np.isin(kinds, ACCESSES).sum())
            total += used
    return accesses, total - accesses


def build_id(program: Path) -> str:
    """sha256 of the executable."""
    return hashlib.sha256(program.read_bytes()).hexdigest()


def _draft(request: Request, level: Level, clocks: ClockWatch) -> Meta:
    launch = request.launch
    return Meta(
        program=str(launch.program),
        build_id=build_id(launch.program),
        argv=launch.argv,
        env=launch.env,
        cwd=str(launch.cwd),
        stdin=launch.stdin,
        level=level.name,
        stamp=request.stamp,
        recorder="local",
        cores=clocks.cores,
        pinned=request.pin,
        seed=request.seed,
        strategy="",
        run=0,
        timeout_s=request.timeout_s,
        created=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        complete=False,
        clocks=clocks.so_far(),
        verdict=Verdict("passed", fail_if=request.fail_if.texts, detail=UNFINISHED),
    )


def _finish(work: Path, draft: Meta, runs: _Runs, clocks: TraceClocks) -> None:
    """Cut the logs to what is used, and write all that is known."""
    assert runs.page is not None
    threads = describe_threads(work, runs.page, draft.cores, draft.pinned)
    for thread in threads:
        with log_path(work, thread.number).open("ab") as file:
            file.truncate(thread.events * EVENT.itemsize)
    _write(work / "threads.json", threads)
    sites = named_sites(work, len(threads))
    if sites.sites:
        _write(work / "sites.json", sites)
    meta = msgspec.structs.replace(
        draft, clocks=clocks, strategy=runs.plan.strategy, run=runs.made, verdict=runs.verdict, complete=True
    )
    _write(work / "meta.json", meta)
    who, site = who_ended(Trace.load(work), runs.verdict)
    verdict = msgspec.structs.replace(runs.verdict, thread=who, site=site)
    _write(work / "meta.json", msgspec.structs.replace(meta, verdict=verdict))
    _write(work / CHECKSUMS_FILE, checksums_of(work))
    (work / CONTROL_FILE).unlink()


def named_sites(path: Path, threads: int) -> TraceSites:
    """The sites that the events of a run name; modules with sites number them in load order (csrc/rb_site.h)."""
    logs = [log_path(path, number) for number in range(threads)]
    events = [np.memmap(log, dtype=EVENT, mode="r") for log in logs if log.exists() and log.stat().st_size]
    named = [np.unique(log[column]) for log in events for column in ("site", "call")]
    wanted = np.unique(np.concatenate(named)) if named else np.empty(0, np.uint32)
    sites, system, before = [], [], 0
    for module in read_modules(path):
        table = load_site_table(Path(module.path))
        for number in wanted[(wanted > before) & (wanted <= before + len(table))].tolist():
            sites.append(msgspec.structs.replace(table.schedule_site(number - before), number=number))
            if table[number - before].is_system:
                system.append(number)
        before += len(table)
    return TraceSites(tuple(sites), tuple(system))


def who_ended(trace: Trace, verdict: Verdict) -> tuple[str, int]:
    """Which thread got the signal or ended the process, and where: the faulting access, or the last place before."""
    wanted = {"signal": Kind.SIGNAL}.get(verdict.how, Kind.EXIT)
    ends = [
        (int(events["before"][row]), number, int(row))
        for number, events in enumerate(trace.events)
        for row in np.flatnonzero(events["kind"] == wanted)[-1:]
    ]
    if not ends:
        return "", -1
    _, number, row = min(ends)
    events = trace.events[number]
    last = events[row]
    if wanted is Kind.SIGNAL and row:
        begun = events[row - 1]
        if begun["kind"] in ACCESSES and not begun["after"]:
            last = begun
    return trace.threads[number].name, int(last["site"] or last["call"]) or -1


@contextlib.contextmanager
def _writing(work: Path) -> Iterator[None]:
    """What goes wrong here is the disk."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot write {work}: {error.strerror}", "see to its disk, or choose another --out"
        ) from error


def _publish(work: Path, out: Path) -> None:
    try:
        if out.exists():
            shutil.rmtree(out)
        work.rename(out)
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror}", f"the recording is in {work}") from error


def _write(path: Path, content: object) -> None:
    write_whole(path, msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")
