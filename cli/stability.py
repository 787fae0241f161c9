"""Watch the skew over time: per window, and accumulated (Fig. 15 of the paper)."""

from __future__ import annotations

import argparse
from itertools import combinations
from pathlib import Path
from typing import Any

from rich.table import Table

from recbulc.calibration.calibrate import CONFIDENCE, check_confidence
from recbulc.calibration.figures import check_figure_path, save_figure, stability_figure
from recbulc.calibration.stability import (
    BURSTS,
    Header,
    Sample,
    StabilityFile,
    read_stability,
    seconds_since_boot,
    variances,
    watch,
)
from recbulc.cli.console import (
    Speaker,
    add_common,
    clocks_kept_awake,
    core_numbers,
    duration_seconds,
    skews_of_test_hook,
    speaker_of,
)
from recbulc.errors import InputError, RecbulcError
from recbulc.tsc_probe.counter import measure_granule
from recbulc.tsc_probe.machine import read_machine
from recbulc.tsc_probe.native import NativeProber

SHORTEST_WINDOW = 0.1
LAST_ROWS = 20


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_common(parser)
    parser.add_argument(
        "--for", dest="seconds", default="1m", metavar="DURATION", help="how long (default %(default)s)"
    )
    parser.add_argument("--every", default="2s", metavar="DURATION", help="length of a window (default %(default)s)")
    parser.add_argument("--cores", type=str, help="which cores, as 0,1,4 or 0-3 (default: the first two we may use)")
    parser.add_argument("--confidence", type=float, default=CONFIDENCE, help="of each window (default %(default)s)")
    parser.add_argument("--csv", type=Path, help="keep every window in this file; an existing one is continued")
    parser.add_argument("--plot", type=Path, help="draw it (.png, .svg, .pdf)")
    parser.add_argument("--from", dest="source", type=Path, metavar="CSV", help="measure nothing, show an earlier run")
    parser.epilog = "example:\n  recbulc stability --for 10m --every 10s --csv skew.csv --plot skew.png"


def run(args: argparse.Namespace) -> int:
    """Exit 0 when at least one window is there; an interruption keeps what was measured."""
    speaker = speaker_of(args)
    if args.plot:
        check_figure_path(args.plot)
    if args.source:
        if args.csv:
            raise InputError("--from shows an earlier run, --csv keeps a new one", "give one of them")
        header, samples, _ = read_stability(args.source)
    else:
        header, samples = _measure(args, speaker)
    if not samples and args.source:
        raise InputError(f"{args.source} has no windows yet", "give another file")
    if not samples:
        raise RecbulcError("not one window was measured", "give more time with --for, or shorter windows with --every")
    spread = variances(samples)
    speaker.document(_document(samples, spread))
    _show(speaker, samples, spread)
    if args.plot:
        save_figure(stability_figure(samples, header.granule_ticks), args.plot)
    return 0


def _measure(args: argparse.Namespace, speaker: Speaker) -> tuple[Header, list[Sample]]:
    seconds, every = duration_seconds(args.seconds), duration_seconds(args.every)
    if every < SHORTEST_WINDOW or every > seconds:
        raise InputError(
            f"windows of {args.every} in a run of {args.seconds}",
            f"choose windows of {SHORTEST_WINDOW} s to the whole run",
        )
    check_confidence(args.confidence)
    skews = skews_of_test_hook(speaker)
    machine = read_machine(Path(skews.root))
    machine.require_clock()
    cores = machine.choose_cores(core_numbers(args.cores))
    if args.cores is None:
        cores = cores[:2]
    prober = NativeProber(skews)
    header = Header(
        machine=machine.identity,
        confidence=args.confidence,
        granule_ticks=measure_granule(prober, cores).ticks,
        width_bits=skews.width_bits,
        injected=skews.injected,
        started=seconds_since_boot(),
    )
    file = StabilityFile(args.csv, header)
    earlier = len(file.samples)
    if earlier:
        speaker.note(f"{args.csv}: continuing after {earlier} windows")
    pairs = list(combinations(cores, 2))
    windows = max(1, round(seconds / every)) * len(pairs)
    speaker.detail(f"{windows} windows of {every:g} s, {BURSTS} bursts each")
    try:
        with clocks_kept_awake(machine, speaker), speaker.progress("watching", windows) as step:
            triggers = {pair: machine.trigger_groups(pair, cores) for pair in pairs}
            for sample in watch(prober, triggers, file, seconds=seconds, every=every):
                step()
                speaker.detail(f"{sample.t:.1f} s: cores {sample.x} → {sample.y}, d = {sample.d:+.3f}")
    except KeyboardInterrupt:
        kept = f" in {args.csv}; the same command continues it" if args.csv else ""
        speaker.note(f"interrupted: {len(file.samples) - earlier} windows measured, all kept{kept}")
    return file.header, file.samples


def _document(samples: list[Sample], spread: dict[tuple[int, int], float]) -> dict[str, Any]:
    return {
        "samples": [
            {"t": s.t, "cores": [s.x, s.y], "d": s.d, "lo": s.lo, "hi": s.hi, "acc_d": s.acc_d, "dropped": s.dropped}
            for s in samples
        ],
        "variance": max(spread.values()),
        "variances": [{"cores": list(pair), "variance": variance} for pair, variance in spread.items()],
    }


def _show(speaker: Speaker, samples: list[Sample], spread: dict[tuple[int, int], float]) -> None:
    table = Table(title=f"skew in ticks, the last {min(LAST_ROWS, len(samples))} windows", title_justify="left")
    for column in ("t in s", "cores", "d", "interval", "accumulated", "dropped"):
        table.add_column(column, justify="right")
    for s in samples[-LAST_ROWS:]:
        interval = f"\\[{s.lo:.2f}, {s.hi:.2f}]"
        table.add_row(f"{s.t:.1f}", f"{s.x} → {s.y}", f"{s.d:+.3f}", interval, f"{s.acc_d:+.3f}", str(s.dropped))
    speaker.show(table)
    for (x, y), variance in spread.items():
        d = [s.d for s in samples if (s.x, s.y) == (x, y)]
        speaker.show(
            f"cores {x} → {y}: {len(d)} windows, d within \\[{min(d):.3f}, {max(d):.3f}], variance {variance:.4g}"
        )
