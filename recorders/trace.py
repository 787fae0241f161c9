"""A recording on disk, read by np.memmap (docs/trace.md): meta, threads, sites, modules and one log per thread."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from recbulc.calibration.model import Kind as IntervalKind
from recbulc.errors import InputError
from recbulc.recorders.control import ControlPage, ThreadState, thread_names
from recbulc.recorders.events import EVENT, Kind
from recbulc.recorders.meta import FORMAT, VERSION, BlockedAt, Meta, TraceSites, TraceThread
from recbulc.recorders.objects import Blocks, Module, Place, Symbols, stack_of
from recbulc.schedule import Site
from recbulc.tsc_probe.overflow import unwrap
from recbulc.tsc_probe.skew import Skews

AGAIN = "record again with `recbulc record`"
CONTROL_FILE = "control"  # there while recbulc has not finished the recording
CHECKSUMS_FILE = "checksums.json"  # CRC-32 of every other file, by its name; written last
BLOCK_BYTES = 1 << 20

Events = npt.NDArray[Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Trace:
    """A recording. `events[n]` are those of thread number n, in program order, with any injected skew applied."""

    path: Path
    meta: Meta
    threads: tuple[TraceThread, ...]
    events: tuple[Events, ...]
    sites: dict[int, Site]
    system_sites: frozenset[int]  # those that are not in the user's own code
    modules: tuple[Module, ...]

    @classmethod
    def load(cls, path: Path) -> Trace:
        """Read and check; says what is missing or damaged."""
        meta = load_meta(path)
        check_sums(path)
        if (path / "threads.json").exists():
            threads = _decoded(path / "threads.json", tuple[TraceThread, ...])
        else:  # recbulc ended before it could write this
            threads = describe_threads(path, ControlPage.open(path / CONTROL_FILE), meta.cores, meta.pinned)
        if [thread.number for thread in threads] != list(range(len(threads))):
            raise InputError(f"{path / 'threads.json'} is damaged: threads are missing", AGAIN)
        events = tuple(_load_events(path, thread) for thread in threads)
        injected, origin = meta.clocks.injected, next((int(log["before"][0]) for log in events if len(log)), 0)
        if injected:
            events = tuple(skewed(log, injected, origin) if len(log) else log for log in events)
        known = (path / "sites.json").exists()
        table = _decoded(path / "sites.json", TraceSites) if known else TraceSites((), ())
        sites = {site.number: site for site in table.sites}
        return cls(path, meta, threads, events, sites, frozenset(table.system), read_modules(path))

    @property
    def lost(self) -> int:
        """How many threads could not record everything."""
        return sum(thread.lost for thread in self.threads)

    def interval(self, x: int, y: int, kind: IntervalKind = "sound") -> tuple[int, int]:
        """(lo, hi) of TS_y − TS_x, read at one instant."""
        bounds = self.meta.clocks.interval(x, y, kind)
        return bounds.lo, bounds.hi

    def location(self, event: Events | np.void) -> Site | None:
        """Where in the user's code: the event's own site, or else the call that led out of it."""
        own, call = self.sites.get(int(event["site"])), self.sites.get(int(event["call"]))
        return own if own and (own.number not in self.system_sites or not call) else call

    def object_name(self, event: Events | np.void) -> Place | None:
        """What an event's address is in, by a name that means the same in every run; None where nobody knows."""
        return self.place(int(event["object"]), int(event["before"]))

    def place(self, address: int, stamp: int) -> Place | None:
        """What lay at an address at some time."""
        symbol = self._symbols.find(address)
        if symbol:
            return symbol
        block = self._blocks.find(address, stamp)
        if block:
            thread, call, nth, offset = block
            site = self.sites.get(call)
            where = f"{site.file}:{site.line}" if site else "?"
            return Place(f"⟨{where}, {self.threads[thread].name}, {nth}⟩", offset)
        on_stack = stack_of(address, [thread.pthread for thread in self.threads])
        if on_stack:
            return Place(f"⟨stack of {self.threads[on_stack[0]].name}⟩", -on_stack[1])
        return None

    @cached_property
    def _blocks(self) -> Blocks:
        return Blocks(self.events)

    @cached_property
    def _symbols(self) -> Symbols:
        return Symbols.of_modules(self.modules)


def load_meta(path: Path) -> Meta:
    """The header of a trace; refuses what is none, and other versions."""
    if not path.is_dir():
        raise InputError(f"there is no trace {path}", "make one with `recbulc record --out DIR`")
    if not (path / "meta.json").is_file():
        raise InputError(f"{path} is no trace: it has no meta.json", "name a directory that `recbulc record` made")
    header = _decoded(path / "meta.json", dict[str, object])
    if header.get("format") != FORMAT:
        raise InputError(f"{path} is no trace (its format is {header.get('format')!r})", AGAIN)
    if header.get("version") != VERSION:
        raise InputError(f"{path} has version {header.get('version')!r}, this recbulc reads version {VERSION}", AGAIN)
    return _decoded(path / "meta.json", Meta)


def check_sums(path: Path) -> None:
    """Refuse a finished recording one of whose files is another than was written."""
    if not (path / CHECKSUMS_FILE).exists():  # recbulc ended before it could write this
        return
    claimed = _decoded(path / CHECKSUMS_FILE, dict[str, int])
    for name, checksum in claimed.items():
        if not (path / name).exists():
            raise InputError(f"{path} is damaged: {name} is missing", AGAIN)
        if _checksum(path / name) != checksum:
            raise InputError(f"{path / name} is damaged: its checksum does not fit its content", AGAIN)


def checksums_of(path: Path) -> dict[str, int]:
    """What check_sums compares; the control page and what is hidden do not belong to a recording."""
    others = {CONTROL_FILE, CHECKSUMS_FILE}
    files = sorted(file for file in path.iterdir() if file.name not in others and not file.name.startswith("."))
    return {file.name: _checksum(file) for file in files}


def _checksum(path: Path) -> int:
    checksum = 0
    try:
        with path.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                checksum = zlib.crc32(block, checksum)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", AGAIN) from error
    return checksum


def is_trace(path: Path) -> bool:
    """Is this a directory that we made, and may make anew?"""
    try:
        return _decoded(path / "meta.json", dict[str, object]).get("format") == FORMAT
    except InputError:
        return False


def describe_threads(path: Path, page: ControlPage, cores: Sequence[int], pinned: bool) -> tuple[TraceThread, ...]:
    """The threads of a run as its control page and its logs have them."""
    rows = page.threads()
    names = thread_names(rows["parent"], rows["nth"])
    threads = []
    for number, row in enumerate(rows):
        state = ThreadState(int(row["state"]))
        blocked = None
        if state in {ThreadState.BLOCKED, ThreadState.TIMED}:
            blocked = BlockedAt(kind_name(int(row["kind"])), int(row["call"]), int(row["object"]))
        threads.append(
            TraceThread(
                number=number,
                name=names[number],
                parent=int(row["parent"]),
                core=int(cores[number % len(cores)]) if pinned else -1,
                events=used_records(log_path(path, number)),
                lost=bool(row["lost"]),
                end=state.name.lower(),
                blocked=blocked,
                pthread=int(row["pthread"]),
            )
        )
    return tuple(threads)


def log_path(path: Path, number: int) -> Path:
    """The log of a thread."""
    return path / f"{number}.events"


def used_records(log: Path) -> int:
    """How many records of a log are used: the first without a stamp ends it (rb_event.h)."""
    size = log.stat().st_size // EVENT.itemsize if log.exists() else 0
    if not size:
        return 0
    stamps = np.memmap(log, dtype=EVENT, mode="r", shape=(size,))["before"]
    low, high = 0, size  # used below low, unused from high on
    while low < high:
        middle = (low + high) // 2
        if stamps[middle]:
            low = middle + 1
        else:
            high = middle
    return low


def read_modules(path: Path) -> tuple[Module, ...]:
    """What was loaded, in load order: `base path` a line."""
    try:
        lines = (path / "modules").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        return tuple(Module(int(base, 16), name) for base, _, name in (line.partition(" ") for line in lines))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        raise InputError(f"{path / 'modules'} is damaged: {error}", AGAIN) from error


def kind_name(kind: int) -> str:
    """Of an event; its number where it has none."""
    return Kind(kind).name if kind in Kind.__members__.values() else str(kind)


def _load_events(path: Path, thread: TraceThread) -> Events:
    log = log_path(path, thread.number)
    size = log.stat().st_size if log.exists() else 0
    if size < thread.events * EVENT.itemsize:
        raise InputError(f"{log} is damaged: {thread.events} events do not fit into {size} bytes", AGAIN)
    if not thread.events:
        return np.empty(0, dtype=EVENT)
    events: Events = np.memmap(log, dtype=EVENT, mode="r", shape=(thread.events,))
    unknown = ~np.isin(events["kind"], list(Kind))
    if unknown.any() or not events["before"].all():
        where = int(np.flatnonzero(unknown | (events["before"] == 0))[0])
        raise InputError(f"{log} is damaged: event {where} is none that recbulc writes", AGAIN)
    return events


def skewed(events: Events, skews: Skews, origin: int) -> Events:
    """A copy with stamps as the test hook's clocks would have shown them (rb_skew.h), on a line without overflow.

    `origin` is a reading near all threads' first (ReCBuLC §3.4): narrow counters are unwrapped from there.
    """
    copy = np.array(events)
    for stamp, core in (("before", "core"), ("after", "core_after")):
        for number in np.unique(events[core]):
            offset, rate_ppm, zero, _ = skews.as_c(int(number))
            rows = (events[core] == number) & (events[stamp] != 0)
            raw = events[stamp][rows]
            shift = offset + np.trunc((raw - np.uint64(zero)).view(np.int64) * (rate_ppm * 1e-6)).astype(np.int64)
            copy[stamp][rows] = raw + shift.view(np.uint64)
    if skews.width_bits < 64:
        period = np.uint64((1 << skews.width_bits) - 1)
        lasted = (copy["after"] - copy["before"]) & period
        began = unwrap(copy["before"] & period, skews.width_bits, origin=origin & int(period))
        copy["before"] = np.uint64(origin) + began.ticks.view(np.uint64)
        copy["after"] = np.where(events["after"] != 0, copy["before"] + lasted, 0)
    return copy


def _decoded(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", AGAIN) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is damaged: {error}", AGAIN) from error
