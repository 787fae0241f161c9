"""A replay under gdb: the same binary, runtime and schedule, stopped where it fails.

A signal stops by itself, before the runtime's handler sees it; an exit is caught at exit_group; for a deadlock we watch
the threads' state words from outside, as in any run, and interrupt the process. Waits of the replay are counted in
slices, so that nothing goes astray while a person looks around.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from recbulc.errors import MachineError
from recbulc.recorders.control import ENVIRONMENT, ControlPage
from recbulc.recorders.deadlock import DeadlockWatch
from recbulc.recorders.runtime import library_path
from recbulc.replay.divergence import Divergence, positions_of
from recbulc.replay.replay import Replayer

LOOK_S = 0.05
GDB_OWN = ("LINES", "COLUMNS")  # that gdb sets for the program


@dataclass(frozen=True)
class GdbResult:
    """`output` is what gdb and the program wrote, where it was not a terminal's; None: the end was reached."""

    output: str
    divergence: Divergence | None


def run_gdb(replayer: Replayer, commands: Sequence[str] | None = None, *, library: Path | None = None) -> GdbResult:
    """One run. With `commands`: these, once it has stopped, and no terminal; else the user's gdb, to be used."""
    gdb = shutil.which("gdb")
    if gdb is None:
        raise MachineError("there is no gdb here", "install gdb, or replay without --gdb")
    page = replayer.page()
    line = [gdb, "-q", *(("-nx", "-batch") if commands is not None else ())]
    for command in _setup(replayer, page, library or library_path()):
        line += ["-ex", command]
    for command in ("run", *(commands or ())):
        line += ["-ex", command]
    line += ["--args", str(replayer.launch.program), *replayer.launch.argv[1:]]
    output = _watched(line, replayer, page, captured=commands is not None)
    row = page.divergence()
    divergence = replayer.divergence(row) if row is not None else replayer.short_of_end(positions_of(page.threads()))
    return GdbResult(output, divergence)


def _setup(replayer: Replayer, page: ControlPage, library: Path) -> list[str]:
    launch = replayer.launch
    preload = ":".join([str(library), *filter(None, [launch.env.get("LD_PRELOAD")])])
    unset = [part for name in GDB_OWN if name not in launch.env for part in ("-u", name)]
    wrapper = ["env", *unset, f"LD_PRELOAD={preload}", f"{ENVIRONMENT}={page.path}"]
    stdin = page.path.with_name("stdin")
    stdin.write_bytes(launch.stdin)
    arguments = shlex.join(launch.argv[1:])
    return [
        "set confirm off",
        "set pagination off",
        "set disable-randomization on",
        f"set exec-wrapper {shlex.join(wrapper)}",
        f"set args {arguments} < {shlex.quote(str(stdin))}",
        "catch syscall exit_group",
    ]


def _watched(line: list[str], replayer: Replayer, page: ControlPage, *, captured: bool) -> str:
    launch = replayer.launch
    with subprocess.Popen(
        line,
        env=launch.env,
        cwd=launch.cwd,
        stdin=subprocess.DEVNULL if captured else None,
        stdout=subprocess.PIPE if captured else None,
        stderr=subprocess.STDOUT if captured else sys.stderr,
        text=True,
        errors="replace",
    ) as process:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN) if not captured else None  # Ctrl-C is for gdb
        try:
            return _wait(process, page, replayer.timeout_s if captured else None)
        finally:
            if before is not None:
                signal.signal(signal.SIGINT, before)
            process.kill()


def _wait(process: subprocess.Popen[str], page: ControlPage, timeout_s: float | None) -> str:
    """Until gdb ends; a deadlock is made known to it by SIGINT, and so is a run that takes too long unattended."""
    watch: DeadlockWatch | None = None
    stopped = False
    waited_s = 0.0
    output = ""
    while True:
        try:
            output, _ = process.communicate(timeout=LOOK_S)
            return output or ""
        except subprocess.TimeoutExpired:
            waited_s += LOOK_S
        threads = page.threads()
        if stopped or not len(threads) or not threads["tid"][0]:
            continue
        pid = int(threads["tid"][0])
        watch = watch or DeadlockWatch(pid, page)
        if watch.look() or (timeout_s is not None and waited_s > timeout_s):
            stopped = True
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
