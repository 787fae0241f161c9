"""Skew over time (ReCBuLC §6.4.2, Fig. 15): per window, and accumulated since the beginning.

The CSV file is the measurement: every window is on disk before the next one starts, and a file can be continued after
an interruption. Its first line says which machine, boot and confidence it belongs to.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd

from recbulc.calibration.episode import Triggers, play_flag
from recbulc.calibration.scheme2 import LEAST_SAMPLES, Ticks, estimate, skew_samples, variance_within
from recbulc.errors import InputError
from recbulc.tsc_probe.machine import Identity, suspended_ns
from recbulc.tsc_probe.native import FLAG_TOUR, Prober

BURSTS = 16  # per window, spread over it
BURST_ROUNDS = 40 * FLAG_TOUR
VERSION = 1


@dataclass(frozen=True)
class Sample:
    """One window of one pair: `t` (seconds since the first window began) is the window's end.

    [lo, hi] is Eq. 9 for the window's samples, `acc_d` the mean of all rounds up to here; both raw, in ticks.
    """

    t: float
    x: int
    y: int
    d: float
    lo: float
    hi: float
    acc_d: float
    rounds: int
    dropped: int
    suspended_s: float


COLUMNS = tuple(field.name for field in fields(Sample))


@dataclass(frozen=True)
class Header:
    """The first line of the CSV file."""

    machine: Identity
    confidence: float
    granule_ticks: int
    width_bits: int
    injected: bool
    started: float  # seconds_since_boot
    format: str = "recbulc-stability"
    version: int = VERSION


class StabilityFile:
    """A CSV file that grows by one line per window."""

    def __init__(self, path: Path | None, header: Header) -> None:
        """Start a new file, or continue the one that is there; None keeps the samples in memory only."""
        self.samples: list[Sample] = []
        self.header = header
        self._path = path
        if path is None:
            return
        if path.exists() and path.stat().st_size:
            self.header, self.samples, whole = read_stability(path)
            self._check_continues(path, header)
            _truncate(path, whole)
        else:
            _append(path, f"# {msgspec.json.encode(header).decode()}\n{','.join(COLUMNS)}\n")

    def add(self, sample: Sample) -> None:
        """Keep one window; on disk before this returns."""
        self.samples.append(sample)
        if self._path is not None:
            _append(self._path, ",".join(str(value) for value in astuple(sample)) + "\n")

    def _check_continues(self, path: Path, header: Header) -> None:
        for name in ("machine", "confidence", "granule_ticks", "width_bits", "injected"):
            there, here = getattr(self.header, name), getattr(header, name)
            if there != here:
                raise InputError(
                    f"{path} cannot be continued: its {name} is {there}, this run's is {here}",
                    "give another --csv file, or plot the old one with --from",
                )


def read_stability(path: Path) -> tuple[Header, list[Sample], int]:
    """The header and samples of a file, and how many of its bytes are whole lines.

    A run that was killed may leave half a line at the end; it is passed over.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", "check the name") from error
    whole = content.rfind(b"\n") + 1
    first, _, rest = content[:whole].partition(b"\n")
    try:
        header = msgspec.json.decode(first.removeprefix(b"# "), type=Header)
        if (header.format, header.version) != (Header.format, VERSION):
            raise InputError(f"{path} is {header.format} version {header.version}", f"this recbulc reads {VERSION}")
        table = pd.read_csv(io.BytesIO(rest))
        if tuple(table.columns) != COLUMNS:
            raise ValueError(f"its columns are {', '.join(table.columns)}")
        samples = msgspec.convert(table.to_dict("records"), type=list[Sample])
    except (msgspec.DecodeError, ValueError) as error:
        raise InputError(f"{path} is not a stability file, or damaged: {error}", "give another file") from error
    return header, samples, whole


def seconds_since_boot() -> float:
    """CLOCK_BOOTTIME: nobody sets it back, and it goes on while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def watch(
    prober: Prober,
    triggers: Mapping[tuple[int, int], Triggers],
    file: StabilityFile,
    *,
    seconds: float,
    every: float,
    now: Callable[[], float] = seconds_since_boot,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Sample]:
    """Measure windows of `every` seconds for `seconds`, all pairs of `triggers` in each; yields what has been kept."""
    pairs = list(triggers)
    totals = {pair: _total(file.samples, pair) for pair in pairs}
    begin = now()
    windows = max(1, round(seconds / every))
    for window in range(windows):
        end = begin + (window + 1) * every
        kept: dict[tuple[int, int], list[Ticks]] = {pair: [] for pair in pairs}
        dropped = dict.fromkeys(pairs, 0)
        for burst in range(BURSTS):
            for pair in pairs:
                rounds = play_flag(prober, pair, triggers[pair], BURST_ROUNDS, file.header.width_bits)
                samples = skew_samples(rounds, FLAG_TOUR, file.header.granule_ticks, file.header.width_bits)
                kept[pair].append(samples.d)
                dropped[pair] += samples.dropped
            due = begin + window * every + (burst + 1) * every / BURSTS
            sleep(max(0.0, due - now()))
        for pair in pairs:
            d = np.concatenate(kept[pair])
            if d.size < LEAST_SAMPLES:  # every burst was disturbed: this window says nothing
                continue
            variance, freedom = variance_within([[float(part.mean()) for part in kept[pair] if part.size]])
            skew = estimate(d, file.header.confidence, (variance / BURSTS, freedom))
            count, mean = totals[pair]
            totals[pair] = (count + d.size, (mean * count + float(d.sum())) / (count + d.size))
            sample = Sample(
                t=round(max(end, now()) - file.header.started, 3),
                x=pair[0],
                y=pair[1],
                d=skew.centre,
                lo=skew.centre - skew.half_width,
                hi=skew.centre + skew.half_width,
                acc_d=totals[pair][1],
                rounds=BURSTS * BURST_ROUNDS,
                dropped=dropped[pair],
                suspended_s=max(0.0, round(suspended_ns() / 1e9, 1)),
            )
            file.add(sample)
            yield sample


def _total(samples: list[Sample], pair: tuple[int, int]) -> tuple[int, float]:
    """How many samples of D an earlier run had, and their mean."""
    earlier = [sample for sample in samples if (sample.x, sample.y) == pair]
    if not earlier:
        return 0, 0.0
    return sum(sample.rounds // FLAG_TOUR for sample in earlier), earlier[-1].acc_d


def variances(samples: list[Sample]) -> dict[tuple[int, int], float]:
    """Sample variance of the windows' d, per pair (the paper's measure of stability)."""
    windows: dict[tuple[int, int], list[float]] = {}
    for sample in samples:
        windows.setdefault((sample.x, sample.y), []).append(sample.d)
    return {pair: float(np.var(d, ddof=1)) if len(d) > 1 else 0.0 for pair, d in windows.items()}


def _append(path: Path, text: str) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}", "choose another file or free space") from error


def _truncate(path: Path, size: int) -> None:
    if path.stat().st_size != size:
        os.truncate(path, size)
