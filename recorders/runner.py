"""One run of a program under the runtime, as `record` and `replay` both need it.

    runner = Runner(launch)
    page = ControlPage.create(path, setting)
    result = runner.run(page, timeout_s=10.0)

The program gets a session of its own, the runtime by LD_PRELOAD and no address space randomisation, and is watched by
pidfd and poll. Its output is captured, and passed on at once where asked for. A deadlock is read off the threads' state
words (DESIGN §3, §6), long before a time-out.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import resource
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from recbulc.errors import InputError, MachineError
from recbulc.recorders.control import ENVIRONMENT, ControlPage, thread_names
from recbulc.recorders.deadlock import DeadlockWatch
from recbulc.recorders.events import Kind
from recbulc.recorders.runtime import library_path

How = Literal["exit", "signal", "timeout", "deadlock"]
OnOutput = Callable[[int, bytes], None]  # file descriptor (1 or 2), what came

ADDR_NO_RANDOMIZE = 0x0040000
ASK_PERSONALITY = 0xFFFFFFFF
PIPE_BYTES = 1 << 20
READ_BYTES = 1 << 16
KEPT_BYTES = 16 << 20  # of each stream: a program that never stops writing must not fill our memory


@dataclass(frozen=True)
class Launch:
    """What is run: the same in every run of it. `argv[0]` is what the program sees as its name."""

    program: Path
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: Path
    stdin: bytes = b""


@dataclass(frozen=True)
class Blocked:
    """A thread of a deadlock: in which kind of call (an event kind), called where (a CALL site; 0: none), on what."""

    thread: int
    name: str
    kind: int
    call: int
    object: int

    @property
    def kind_name(self) -> str:
        """`MUTEX_LOCK` and so on."""
        return Kind(self.kind).name if self.kind in Kind.__members__.values() else str(self.kind)


@dataclass(frozen=True)
class RunResult:
    """How a run ended. `code` is the exit code or the number of the signal; `threads` the page's last state."""

    how: How
    code: int
    seconds: float
    stdout: bytes
    stderr: bytes
    threads: npt.NDArray[np.void] = field(repr=False)
    blocked: tuple[Blocked, ...] = ()

    @property
    def events(self) -> int:
        """How many events all threads appended."""
        return int(self.threads["events"].sum())


class Runner:
    """Runs one Launch as often as asked, one run at a time; what all runs share is prepared once."""

    def __init__(self, launch: Launch, *, library: Path | None = None) -> None:
        self.launch = launch
        preload = [str(library or library_path()), *filter(None, [launch.env.get("LD_PRELOAD")])]
        self._env = launch.env | {"LD_PRELOAD": ":".join(preload)}
        self._stdin = _stored(launch.stdin)
        self._spawner = ThreadPoolExecutor(1, "recbulc-spawner")

    def close(self) -> None:
        """Give back what is open."""
        self._spawner.shutdown()
        os.close(self._stdin)

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, page: ControlPage, *, timeout_s: float, on_output: OnOutput | None = None) -> RunResult:
        """One run, to its end or to ours: nothing of its session is left when this returns."""
        started = time.monotonic()
        # Ctrl-C interrupts the main thread only, so no child is lost between its fork and our knowing of it
        spawning = self._spawner.submit(self._spawn, page)
        try:
            return _watched(spawning.result(), page, started, timeout_s, on_output)
        finally:
            process = spawning.result()
            if process.returncode is None:
                _kill(process)

    def _spawn(self, page: ControlPage) -> subprocess.Popen[bytes]:
        launch = self.launch
        try:
            # opened anew for an offset of its own
            with open(f"/proc/self/fd/{self._stdin}", "rb") as stdin, _no_randomisation():  # noqa: PTH123
                process = subprocess.Popen(
                    launch.argv,
                    executable=launch.program,
                    env=self._env | {ENVIRONMENT: str(page.path.absolute())},
                    cwd=launch.cwd,
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                    bufsize=0,
                )
        except OSError as error:
            where = error.filename or launch.program
            raise InputError(f"cannot run {launch.program}: {error.strerror}", f"see to {where}") from error
        with contextlib.suppress(OSError):
            _, most = resource.prlimit(process.pid, resource.RLIMIT_CORE)
            resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, most))  # a hundred replays are no hundred cores
        return process


def _watched(
    process: subprocess.Popen[bytes], page: ControlPage, started: float, timeout_s: float, on_output: OnOutput | None
) -> RunResult:
    """Until it has ended, or is ended by us."""
    pidfd = os.pidfd_open(process.pid)
    streams = _Streams(process, on_output)
    watch = DeadlockWatch(process.pid, page)
    how: How | None = None
    blocked: list[int] = []
    try:
        poller = streams.poller()
        poller.register(pidfd, select.POLLIN)
        while how is None:
            left = started + timeout_s - time.monotonic()
            if left <= 0:
                how = "timeout"
                break
            ready = [fd for fd, _ in poller.poll(1000 * min(left, watch.interval_s))]
            streams.read(ready, poller)
            if pidfd in ready:
                break
            if not ready and (blocked := watch.look()):
                how = "deadlock"
    finally:
        code = _kill(process)
        os.close(pidfd)
        if streams.close():
            _kill_session(process.pid)
    seconds = time.monotonic() - started
    threads = page.threads()
    if how is None:
        how, code = ("signal", -code) if code < 0 else ("exit", code)
    else:
        code = 0
    return RunResult(how, code, seconds, streams.kept(1), streams.kept(2), threads, describe_blocked(threads, blocked))


def _kill(process: subprocess.Popen[bytes]) -> int:
    """End it and its group; its exit code."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # the leader is not reaped yet: the number is still ours
    return process.wait()


class _Streams:
    """The program's stdout and stderr."""

    def __init__(self, process: subprocess.Popen[bytes], on_output: OnOutput | None) -> None:
        assert process.stdout
        assert process.stderr
        self._files = {process.stdout.fileno(): (1, process.stdout), process.stderr.fileno(): (2, process.stderr)}
        self._open = set(self._files)
        self._chunks: dict[int, list[bytes]] = {1: [], 2: []}
        self._sizes = {1: 0, 2: 0}
        self._on_output = on_output
        for fd in self._files:
            os.set_blocking(fd, False)
            with contextlib.suppress(OSError):  # beyond what a user may have; the default serves too
                fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def poller(self) -> select.poll:
        poller = select.poll()
        for fd in self._files:
            poller.register(fd, select.POLLIN)
        return poller

    def read(self, ready: list[int], poller: select.poll | None = None) -> None:
        for fd in self._open.intersection(ready):
            while True:
                try:
                    chunk = os.read(fd, READ_BYTES)
                except BlockingIOError:
                    break
                if not chunk:
                    self._open.discard(fd)
                    if poller:
                        poller.unregister(fd)
                    break
                self._take(self._files[fd][0], chunk)

    def _take(self, which: int, chunk: bytes) -> None:
        if self._on_output:
            self._on_output(which, chunk)
        if self._sizes[which] < KEPT_BYTES:
            self._chunks[which].append(chunk)
            self._sizes[which] += len(chunk)

    def kept(self, which: int) -> bytes:
        return b"".join(self._chunks[which])[:KEPT_BYTES]

    def close(self) -> bool:
        """Take what is still in the pipes, without waiting for others that hold their ends; are there any?"""
        self.read(list(self._open))
        for _, file in self._files.values():
            file.close()
        return bool(self._open)


def describe_blocked(threads: npt.NDArray[np.void], numbers: list[int]) -> tuple[Blocked, ...]:
    """The threads of a deadlock, from the page."""
    names = thread_names(threads["parent"], threads["nth"])
    return tuple(
        Blocked(number, names[number], int(row["kind"]), int(row["call"]), int(row["object"]))
        for number in numbers
        for row in (threads[number],)
    )


def find_program(name: str, cwd: Path) -> Path:
    """The executable that a shell would run for `name`; says what is wrong where there is none."""
    search = [cwd / name] if "/" in name else [cwd / part / name for part in os.get_exec_path()]
    found = [path for path in search if path.is_file()]
    for path in found:
        if os.access(path, os.X_OK):
            return path.resolve()
    if found:
        raise InputError(f"{found[0]} is not executable", f"chmod +x {found[0]}, or name the program itself")
    if (cwd / name).is_dir():
        raise InputError(f"{name} is a directory", "name a program")
    remedy = f"write ./{name}" if "/" not in name and (cwd / name).is_file() else "check its name after --"
    raise InputError(f"there is no program {name}", remedy)


def _kill_session(session: int) -> None:
    """End what left the group of the program but not its session."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (process / "stat").read_bytes().rpartition(b")")[2].split()
            if int(fields[3]) == session:
                os.kill(int(process.name), signal.SIGKILL)


def _stored(content: bytes) -> int:
    """A descriptor from which each run reads `content` anew."""
    fd = os.memfd_create("recbulc-stdin")
    with open(fd, "wb", closefd=False) as file:
        file.write(content)
    return fd


@contextlib.contextmanager
def _no_randomisation() -> Iterator[None]:
    """What this thread starts meanwhile has its addresses where they are in every run (setarch -R)."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = libc.personality(ASK_PERSONALITY)
    if libc.personality(before | ADDR_NO_RANDOMIZE) == -1:
        raise MachineError(
            f"personality(ADDR_NO_RANDOMIZE) is refused: {os.strerror(ctypes.get_errno())}",
            "in a container, allow it (docker run --security-opt seccomp=unconfined)",
        )
    try:
        yield
    finally:
        libc.personality(before)
