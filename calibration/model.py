"""The clock model: the skew intervals of all core pairs of one machine, for one boot.

File format history (docs/clock-model.md describes it):
1: first version. `seen` of a pair came later; a file without it is read as one that has seen nothing.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass, fields
from itertools import combinations
from math import isfinite
from pathlib import Path
from typing import Literal

import msgspec
import platformdirs

from recbulc.calibration.interval import Interval
from recbulc.calibration.pair import PairClock, drift_widening
from recbulc.errors import InputError
from recbulc.tsc_probe.counter import Granule
from recbulc.tsc_probe.machine import Identity

FORMAT = "recbulc-clocks"
VERSION = 1
DRIFT_LIMIT_PPM = 0.1  # two counters fed by one crystal; see docs/clock-model.md

Kind = Literal["sound", "confident"]
UNMOVED = Interval(0, 0)


@dataclass(frozen=True)
class ClockModel:
    """Everything a calibration found out; `injected` marks the test hook."""

    machine: Identity
    created: str
    suspended_ns: int
    hz: float
    granule: Granule
    width_bits: int
    drift_limit_ppm: float
    invariant: bool
    guest: bool
    injected: bool
    lfence_orders: bool
    pairs: tuple[PairClock, ...]
    format: str = FORMAT
    version: int = VERSION

    def __post_init__(self) -> None:
        if not self.pairs:
            raise ValueError("a model without pairs")
        if not (1 <= self.width_bits <= 64 and isfinite(self.hz) and self.hz > 0 and isfinite(self.drift_limit_ppm)):
            raise ValueError("a counter that cannot be")

    @property
    def cores(self) -> tuple[int, ...]:
        """All cores that some pair has."""
        return tuple(sorted({core for pair in self.pairs for core in pair.cores}))

    def pair(self, x: int, y: int) -> PairClock:
        """The measured pair {x, y}, in the order in which it was measured."""
        for pair in self.pairs:
            if set(pair.cores) == {x, y}:
                return pair
        raise InputError(
            f"the clock model has no pair of the cores {x} and {y}", f"calibrate with --cores {x},{y} among others"
        )

    def interval(self, x: int, y: int, kind: Kind = "sound", at_boottime_ns: int | None = None) -> Interval:
        """Bounds of TS_y − TS_x, read at one instant.

        At another time than that of the calibration they are wider by what two clocks may have drifted apart since.
        """
        if x == y:
            return UNMOVED
        pair = self.pair(x, y)
        interval = pair.sound if kind == "sound" else pair.confident
        if at_boottime_ns is not None:
            drift = abs(at_boottime_ns - pair.boottime_ns) * drift_ticks_per_ns(self.hz, self.drift_limit_ppm)
            interval = interval.widened(drift_widening(drift, self.granule, pair.round_trip_ticks))
        return interval if pair.cores == (x, y) else interval.reversed()

    def open_loops(self) -> list[tuple[int, int, int]]:
        """Triples of cores whose three intervals contradict each other: x to y to z is not x to z."""
        loops = []
        at = max(pair.boottime_ns for pair in self.pairs)
        for x, y, z in combinations(self.cores, 3):
            try:
                xy, yz, xz = (self.interval(*way, at_boottime_ns=at) for way in ((x, y), (y, z), (x, z)))
                around = xy.plus(yz).intersection(xz)
            except InputError:  # not every pair was measured
                continue
            if around.contradictory:
                loops.append((x, y, z))
        return loops

    def save(self, path: Path) -> None:
        """Write the file whole or not at all."""
        content: dict[str, object] = msgspec.to_builtins(self)
        content["checksum"] = checksum(content)
        write_whole(path, msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")


def load_model(path: Path, machine: Identity, *, allow_injected: bool = False) -> ClockModel:
    """Read a model of this machine and this boot; anything else is refused, with the reason."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot read the clock model {path}: {error.strerror}", "make one with `recbulc calibrate`"
        ) from error
    again = f"make a new one with `recbulc calibrate --out {path}`"
    try:
        header = msgspec.json.decode(content, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is damaged: {error}", again) from error
    if header.get("format") != FORMAT:
        raise InputError(f"{path} is not a clock model (its format is {header.get('format')!r})", again)
    if header.get("version") != VERSION:
        raise InputError(f"{path} has version {header.get('version')!r}, this recbulc reads version {VERSION}", again)
    claimed = header.pop("checksum", None)
    if claimed != checksum(header):
        raise InputError(f"{path} is damaged: its checksum does not fit its content", again)
    try:
        model = msgspec.convert(header, type=ClockModel)
    except msgspec.ValidationError as error:
        raise InputError(f"{path} is damaged: {error}", again) from error
    for field in fields(Identity):
        here, there = getattr(machine, field.name), getattr(model.machine, field.name)
        if here != there:
            what = "another boot of this machine" if field.name == "boot_id" else "another machine"
            raise InputError(f"{path} was measured on {what}: {field.name} was {there!r}, is {here!r}", again)
    if model.injected and not allow_injected:
        raise InputError(f"{path} was measured with injected skews (the test hook)", again)
    return model


def check_model_path(path: Path) -> None:
    """Say before the work, not after it, that a model cannot be written; nothing else is ever overwritten by one."""
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} is no directory", "create it, or choose another place for the model")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"cannot write {path}", "choose another place for the model")
    if path.exists() and path.stat().st_size and FORMAT.encode() not in path.read_bytes():
        raise InputError(f"{path} is there and is no clock model", "choose another name, or remove it first")


def checksum(content: dict[str, object]) -> str:
    """Of everything in a model file but itself."""
    return hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()


def drift_ticks_per_ns(hz: float, drift_limit_ppm: float) -> float:
    """How fast two counters may drift apart."""
    return hz * drift_limit_ppm * 1e-15


def default_path(machine: Identity) -> Path:
    """Where this machine's model of this boot is kept."""
    key = hashlib.sha256(msgspec.json.encode(machine)).hexdigest()[:16]
    return Path(platformdirs.user_cache_dir("recbulc")) / f"clocks-{key}.json"


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file by way of a temporary one beside it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(temporary).chmod(0o644)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}", "choose another place") from error
