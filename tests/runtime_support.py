"""Building small C programs and running them under the preload runtime."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recbulc.recorders.control import ControlPage, Level, Mode, Setting
from recbulc.recorders.events import EVENT, Kind
from recbulc.recorders.runner import Launch, Runner, RunResult
from tests.support import X, Y

ROOT = Path(__file__).parent.parent
PROGRAMS = ROOT / "tests/programs/runtime"
INCLUDE = [f"-I{ROOT / folder / 'csrc'}" for folder in ("recorders", "tsc_probe")]


def build(name: str, folder: Path, *flags: str) -> Path:
    """The program tests/programs/runtime/<name>, compiled without our wrapper."""
    out = folder / Path(name).stem
    compiler = "c++" if name.endswith("pp") else "cc"
    command = [compiler, "-g", "-O1", "-mno-red-zone", "-pthread", *INCLUDE, *flags]
    subprocess.run([*command, str(PROGRAMS / name), "-o", str(out), "-ldl"], check=True)
    return out


@dataclass(frozen=True)
class Recorded:
    """A run and what it left behind."""

    result: RunResult
    page: ControlPage
    directory: Path

    def events(self, thread: int) -> np.ndarray:
        """The log of a thread, up to the first slot that was never used."""
        raw = (self.directory / f"{thread}.events").read_bytes()
        events = np.frombuffer(raw[: len(raw) // EVENT.itemsize * EVENT.itemsize], dtype=EVENT)
        unused = np.flatnonzero(events["before"] == 0)
        return events[: unused[0]] if unused.size else events

    def of(self, thread: int, *kinds: Kind) -> np.ndarray:
        """The events of these kinds."""
        events = self.events(thread)
        return events[np.isin(events["kind"], kinds)]

    @property
    def threads(self) -> int:
        return len(self.result.threads)


def setting(directory: Path, **how) -> Setting:
    """A recording there; SYNC, on two cores."""
    if directory.exists():
        shutil.rmtree(directory)
    directory.mkdir(parents=True)
    how = {"level": Level.SYNC, "cores": (X, Y)} | how
    return Setting(Mode.RECORD, directory=directory, **how)


def launch(program: Path, *arguments: str, stdin: bytes = b"") -> Launch:
    return Launch(program, (str(program), *arguments), dict(os.environ), program.parent, stdin)


def record(program: Path, *arguments: str, timeout_s: float = 30.0, **how) -> Recorded:
    """Run it once, recorded."""
    directory = program.parent / f"{program.name}.trace"
    page = ControlPage.create(program.parent / "control", setting(directory, **how))
    with Runner(launch(program, *arguments)) as runner:
        result = runner.run(page, timeout_s=timeout_s)
    return Recorded(result, page, directory)


def wait_until(condition, seconds: float = 20.0) -> None:
    """Until it is so; fails when it never is."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        os.sched_yield()
