"""The page that driver and runtime share: rb_control.h, in Python.

The driver writes a Setting into a fresh file and names it in $RECBULC_CONTROL; the runtime maps the same file and keeps
its threads' states there. A test compares the layout with the header.
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

import numpy as np
import numpy.typing as npt

from recbulc.errors import InputError
from recbulc.tsc_probe.sequences import SEQUENCES

ENVIRONMENT = "RECBULC_CONTROL"
MAGIC = 0x6C75626365727031
MOST_THREADS = 1024
MOST_CORES = 256
PATH_BYTES = 1024
CHUNK_BYTES = 1 << 20

THREAD = np.dtype(
    [
        ("state", "<u4"),
        ("tid", "<u4"),
        ("parent", "<u4"),
        ("nth", "<u4"),
        ("kind", "<u4"),
        ("call", "<u4"),
        ("object", "<u8"),
        ("events", "<u8"),
        ("position", "<u4"),
        ("lost", "<u4"),
        ("pthread", "<u8"),
        ("unused", "V8"),
    ]
)

DIVERGENCE = np.dtype(
    [
        (name, "<u4")
        for name in (
            "set",
            "reason",
            "thread",
            "position",
            "found_kind",
            "found_site",
            "found_count",
            "found_call",
            "awaited_thread",
            "awaited_position",
        )
    ]
)

CONTROL = np.dtype(
    [
        ("magic", "<u8"),
        ("mode", "<u4"),
        ("level", "<u4"),
        ("stamp", "<u4"),
        ("pin", "<u4"),
        ("ncores", "<u4"),
        ("cores", "<u2", MOST_CORES),
        ("pad", "<u4"),
        ("chunk_bytes", "<u8"),
        ("seed", "<u8"),
        ("access_delay_ppm", "<u4"),
        ("sync_delay_ppm", "<u4"),
        ("delay_us", "<u4"),
        ("start_us", "<u4"),
        ("dir", f"S{PATH_BYTES}"),
        ("schedule", f"S{PATH_BYTES}"),
        ("nthreads", "<u4"),
        ("ready", "<u4"),
        ("sites_patched", "<u4"),
        ("sites_unpatched", "<u4"),
        ("divergence", DIVERGENCE),
        ("unused", "V8"),
        ("threads", THREAD, MOST_THREADS),
    ]
)


class Mode(IntEnum):
    """What the runtime does in this run."""

    RECORD = 1
    REPLAY = 2


class Level(IntEnum):
    """What a recording stamps (ReCBuLC §5); each has what SYNC has."""

    SYNC = 1
    FUNC = 2
    FUNCLOOP = 3
    RW = 4


class ThreadState(IntEnum):
    """What a thread is doing; rb_control.h says more."""

    NONE = 0
    RUNNING = 1
    BLOCKED = 2
    TIMED = 3
    DELAYED = 4
    PARKED = 5
    ENDED = 6


@dataclass(frozen=True)
class Knobs:
    """How a run is provoked: all that a strategy may decide. The default is a plain run."""

    seed: int = 0
    access_delay_ppm: int = 0
    sync_delay_ppm: int = 0
    delay_us: int = 0
    start_us: int = 0


@dataclass(frozen=True)
class Setting:
    """What one run is to do."""

    mode: Mode
    level: Level = Level.RW
    stamp: str = "2e"
    cores: tuple[int, ...] = ()
    pin: bool = True
    chunk_bytes: int = CHUNK_BYTES
    knobs: Knobs = field(default_factory=Knobs)
    directory: Path | None = None  # of a recording
    schedule: Path | None = None  # compiled, of a replay


class ControlPage:
    """One run's page, mapped."""

    def __init__(self, path: Path, mapped: mmap.mmap) -> None:
        self.path = path
        self._page = np.frombuffer(mapped, dtype=CONTROL)[0]

    @classmethod
    def create(cls, path: Path, setting: Setting) -> ControlPage:
        """A fresh file, never an old one written over: a process that an earlier run left behind may still map that."""
        path.unlink(missing_ok=True)
        with path.open("x+b") as file:
            os.posix_fallocate(file.fileno(), 0, CONTROL.itemsize)  # a hole could end us by SIGBUS on a full disk
            page = cls(path, mmap.mmap(file.fileno(), CONTROL.itemsize))
        page._write(setting)
        return page

    @classmethod
    def open(cls, path: Path) -> ControlPage:
        """Look at the page of a run that is going on, or has ended."""
        try:
            with path.open("r+b") as file:
                page = cls(path, mmap.mmap(file.fileno(), CONTROL.itemsize))
        except (OSError, ValueError) as error:
            raise InputError(f"cannot read the control page {path}: {error}", "record again") from error
        if page._page["magic"] != MAGIC:
            raise InputError(f"{path} is no control page", "record again")
        return page

    def _write(self, setting: Setting) -> None:
        page = self._page
        knobs = setting.knobs
        page["mode"] = setting.mode
        page["level"] = setting.level
        page["stamp"] = SEQUENCES.index(setting.stamp)
        page["pin"] = setting.pin
        if not 0 < len(setting.cores) <= MOST_CORES:
            raise InputError(f"a run on {len(setting.cores)} cores", f"give 1 to {MOST_CORES} with taskset")
        page["ncores"] = len(setting.cores)
        page["cores"][: len(setting.cores)] = setting.cores
        page["chunk_bytes"] = setting.chunk_bytes
        page["seed"] = knobs.seed
        page["access_delay_ppm"] = knobs.access_delay_ppm
        page["sync_delay_ppm"] = knobs.sync_delay_ppm
        page["delay_us"] = knobs.delay_us
        page["start_us"] = knobs.start_us
        for name, where in (("dir", setting.directory), ("schedule", setting.schedule)):
            page[name] = path_bytes(where) if where else b""
        page["magic"] = MAGIC

    @property
    def ready(self) -> bool:
        """Did the runtime get as far as main?"""
        return bool(self._page["ready"])

    @property
    def sites_patched(self) -> int:
        """How many sites this run turned into calls."""
        return int(self._page["sites_patched"])

    @property
    def sites_unpatched(self) -> int:
        """How many it could not."""
        return int(self._page["sites_unpatched"])

    def threads(self) -> npt.NDArray[np.void]:
        """A copy of what the threads are doing now; index = number of the thread."""
        count = min(int(self._page["nthreads"]), MOST_THREADS)
        return np.array(self._page["threads"][:count])

    def divergence(self) -> npt.NDArray[np.void] | None:
        """A copy of the first divergence of a replay; None while there is none."""
        return np.array(self._page["divergence"]) if self._page["divergence"]["set"] else None


def path_bytes(path: Path) -> bytes:
    """An absolute path as the page has room for."""
    encoded = str(path.absolute()).encode(errors="surrogateescape")
    if len(encoded) >= PATH_BYTES:
        raise InputError(f"the path {path} is longer than {PATH_BYTES - 1} bytes", "choose a shorter one")
    return encoded


def thread_names(parents: npt.ArrayLike, nth: npt.ArrayLike) -> list[str]:
    """Threads by creation: `0`, `0.1`, `0.1.2`. A parent has a smaller number than its children."""
    names: list[str] = []
    for number, (parent, place) in enumerate(zip(np.asarray(parents), np.asarray(nth), strict=True)):
        names.append(f"{names[parent]}.{place}" if parent < number else str(number))
    return names
