"""A few of the bugs, built and recorded once for all tests of the commands behind `record`."""

from __future__ import annotations

import atexit
import functools
import io
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from recbulc.cli.main import main
from recbulc.recorders.build import run_compiler
from recbulc.recorders.clocks import ClockWatch
from recbulc.recorders.provoke import Mixed
from recbulc.recorders.record import Request, record
from recbulc.recorders.runner import Launch
from recbulc.recorders.verdict import FailIf
from recbulc.solver.solve import solve
from recbulc.tsc_probe.skew import Skews
from tests.programs.catalogue import BUGS, Bug
from tests.support import X

NAMES = ("lost_update", "queue_freed", "two_locks", "half_written")  # exit, signal, deadlock, regex
COMMAND = Path(sys.executable).parent / "recbulc"
MOST_RUNS = 20_000


@dataclass(frozen=True)
class Chain:
    """A bug on its way: recorded until it failed (or once, until it passed), and solved."""

    bug: Bug
    program: Path
    fixed: Path
    trace: Path
    schedule: Path


@dataclass(frozen=True)
class Done:
    """What a command did, run in this process."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict:
        """The one JSON document on stdout."""
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)


class _Captured(io.TextIOWrapper):
    """As sys.stdout is when it is a pipe."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    @property
    def text(self) -> str:
        return self.buffer.getvalue().decode(errors="replace")

    def fileno(self) -> int:
        raise OSError("not a file")


def run(*args: str | Path) -> Done:
    """The command as `recbulc` calls it, without the second that starting it takes."""
    out, err = _Captured(), _Captured()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main([str(arg) for arg in args])
        except SystemExit as usage:
            code = usage.code
    return Done(code, out.text, err.text)


def refused(done: Done, code: int, *said: str) -> None:
    """One sentence that says what was wrong and what to do, and nothing else on stdout."""
    assert done.code == code, done.err
    assert not done.out
    assert done.err.count("recbulc: error: ") == 1
    for text in said:
        assert text in done.err


@contextmanager
def on_one_core() -> Iterator[None]:
    """Without clocks to measure; what is started meanwhile inherits it."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {X})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@functools.cache
def folder() -> Path:
    """Of everything here."""
    path = Path(tempfile.mkdtemp(prefix="recbulc-chain-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@functools.cache
def built(name: str, *, fixed: bool = False) -> Path:
    """A bug by our compiler."""
    bug = BUGS[name]
    out = folder() / (f"{name}-fixed" if fixed else name)
    flags = [*bug.flags, *(["-DFIXED"] if fixed else [])]
    assert run_compiler([*flags, "-g", "-pthread", str(bug.path), "-o", str(out)], cxx=bug.cpp) == 0
    return out


@functools.cache
def one_clock() -> ClockWatch:
    """Of one core."""
    with on_one_core():
        return ClockWatch.of_this_machine(Skews())


@functools.cache
def chain(name: str, *, failing: bool = True) -> Chain:
    """Recorded on one core, with every delay that provoking has, and solved."""
    bug, program = BUGS[name], built(name)
    stem = name if failing else f"{name}-passing"
    launch = Launch(program, (str(program),), dict(os.environ), folder())
    request = Request(
        launch=launch,
        out=folder() / f"{stem}.trace",
        fail_if=FailIf.parse(bug.fail_if),
        timeout_s=10.0,
        until_fail=MOST_RUNS if failing else 0,
        seed=1,
    )
    for _ in range(10):  # what never fails by itself passes at the first try
        with on_one_core():
            recorded = record(request, one_clock(), Mixed(1, None if failing else "plain"))
        if recorded.trace.meta.verdict.failed is failing:
            break
    assert recorded.trace.meta.verdict.failed is failing
    solution = solve(recorded.trace)
    assert solution.schedule, solution.why
    schedule = folder() / f"{stem}.schedule"
    solution.schedule.save(schedule)
    return Chain(bug, program, built(name, fixed=True), request.out, schedule)


def damaged(content: bytes, rng: random.Random) -> bytes:
    """One of: cut, a bit turned, bytes overwritten, a number changed, something behind it, nothing left."""
    damage = bytearray(content)
    way = rng.choice(("cut", "bit", "bytes", "number", "more", "empty"))
    if way == "cut":
        del damage[rng.randrange(len(damage)) :]
    elif way == "bit":
        damage[rng.randrange(len(damage))] ^= 1 << rng.randrange(8)
    elif way == "bytes":
        for _ in range(8):
            damage[rng.randrange(len(damage))] = rng.randrange(256)
    elif way == "number":
        digits = [at for at, byte in enumerate(damage) if byte in b"0123456789"] or [0]
        at = rng.choice(digits)
        damage[at : at + 1] = rng.choice((b"9", b"0", b"99999999999999999999999", b"-7", b"1e9", b'"x"', b"[[[["))
    elif way == "more":
        damage += rng.randbytes(rng.randrange(1, 200))
    else:
        damage.clear()
    return bytes(damage)
