"""Measure how far the clocks of every pair of cores may differ.

Writes a clock model: for every pair a `sound` interval, proven by single rounds (Scheme 1 of the paper), and a
narrower `confident` one (Scheme 2). Both bound TS_y − TS_x of two readings at one instant, in ticks.
"""

from __future__ import annotations

import argparse
import os
import time
from itertools import combinations
from pathlib import Path
from typing import Any

from rich.table import Table

from recbulc.calibration.calibrate import CONFIDENCE, calibrate, check_confidence, look_again
from recbulc.calibration.change import Comparison, compare_models, looks_within, smallest_detectable_ticks
from recbulc.calibration.episode import Effort, play_flag
from recbulc.calibration.figures import calibration_figure, check_figure_path, save_figure
from recbulc.calibration.interval import FAR, Interval
from recbulc.calibration.model import DRIFT_LIMIT_PPM, ClockModel, check_model_path, default_path, load_model
from recbulc.calibration.moves import MoveHistory, history_path, load_history, recall
from recbulc.calibration.pair import UNSOUND_TESTERS
from recbulc.calibration.scheme2 import TABLE_CONFIDENCES, confidence_table
from recbulc.cli.console import Speaker, add_common, clocks_kept_awake, core_numbers, skews_of_test_hook, speaker_of
from recbulc.errors import InputError
from recbulc.tsc_probe.machine import read_machine
from recbulc.tsc_probe.native import NativeProber

PICTURE_ROUNDS = 100_000
MOST_DRIFT_PPM = 1e6
GUESTS_MOVE = ", as a guest's does when its host moves its cores"

Confidences = dict[tuple[int, int], dict[float, tuple[float, float]]]


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_common(parser)
    parser.add_argument("--cores", type=str, help="which cores, as 0,1,4 or 0-3 (default: all we may use)")
    parser.add_argument("--rounds", type=int, default=Effort.rounds, help="of every tester (default %(default)s)")
    parser.add_argument(
        "--confidence", type=float, default=CONFIDENCE, help="coefficient of `confident` (default %(default)s)"
    )
    parser.add_argument("--out", type=Path, help="where the model goes (default: the user's cache)")
    parser.add_argument(
        "--plot", type=Path, help="draw the intervals and how TS_y − TS_x is distributed (.png, .svg, .pdf)"
    )
    parser.add_argument("--table", action="store_true", help="confidence intervals by N, M and coefficient (Table 6)")
    parser.add_argument("--compare", type=Path, metavar="OLD", help="have the clocks changed since OLD? (exit 1 if so)")
    parser.add_argument(
        "--drift-limit",
        type=float,
        default=DRIFT_LIMIT_PPM,
        metavar="PPM",
        help="by which two clocks may drift apart after the calibration (default %(default)s)",
    )
    parser.epilog = "example:\n  recbulc calibrate --cores 0,1 --plot clocks.png"


def run(args: argparse.Namespace) -> int:
    """Exit 0 when calibrated; 1 when --compare finds that the clocks changed."""
    started = time.monotonic()
    speaker = speaker_of(args)
    skews = skews_of_test_hook(speaker)
    machine = read_machine(Path(skews.root))
    machine.require_clock()
    cores = machine.choose_cores(core_numbers(args.cores))
    effort = Effort(rounds=args.rounds)
    check_confidence(args.confidence)
    if not 0 <= args.drift_limit <= MOST_DRIFT_PPM:
        raise InputError(f"a drift limit of {args.drift_limit} ppm", f"give 0 to {MOST_DRIFT_PPM:g}")
    if args.out:
        check_model_path(args.out)
    out = args.out or default_path(machine.identity)
    if args.plot:
        check_figure_path(args.plot)
    old = load_model(args.compare, machine.identity, allow_injected=skews.injected) if args.compare else None

    prober = NativeProber(skews)
    pairs = list(combinations(cores, 2))
    with clocks_kept_awake(machine, speaker), speaker.progress("calibrating", len(pairs) * effort.episodes) as step:
        model = calibrate(
            machine,
            prober,
            cores,
            effort=effort,
            confidence=args.confidence,
            width_bits=skews.width_bits,
            injected=skews.injected,
            drift_limit_ppm=args.drift_limit,
            on_episode=step,
        )
        first = model.pairs[0].cores
        picture = None
        if args.plot or args.table:
            triggers = machine.trigger_groups(first, cores)
            picture = play_flag(prober, first, triggers, PICTURE_ROUNDS, model.width_bits)

        def look(pair: tuple[int, int], seconds: float) -> list[list[float]]:
            speaker.detail(f"watching the cores {pair[0]} and {pair[1]} for {seconds:.1f} s: do they move?")
            return look_again(machine, prober, model, pair, seconds)

        history = None
        if model.guest and not model.injected:
            history = load_history(history_path(machine.identity), machine.identity, model.suspended_ns)
            looks = looks_within((time.monotonic() - started) / len(pairs))
            model, history = recall(history, model, args.confidence, look, looks)
        comparison = None
        if old:
            looks = looks_within((time.monotonic() - started) / len(pairs))
            comparison = compare_models(old, model, args.confidence, look, looks)

    model.save(out)
    if history:
        _keep(speaker, history)
    if args.plot and picture is not None:
        save_figure(calibration_figure(model, picture), args.plot)
    table = confidence_table(picture, model.granule.ticks, model.width_bits) if args.table and picture else {}
    speaker.document(_document(model, out, args, comparison, table, time.monotonic() - started))
    _show(speaker, model, comparison, table)
    speaker.note(f"clock model: {out}" + (f", picture: {args.plot}" if args.plot else ""))
    return 1 if comparison and comparison.changed else 0


def _keep(speaker: Speaker, history: MoveHistory) -> None:
    try:
        history.save(history_path(history.machine))
    except InputError as error:  # a cache: the model is there without it
        speaker.warn(f"{error.what}; later calibrations will not know how this guest's cores move")


def _document(
    model: ClockModel,
    out: Path,
    args: argparse.Namespace,
    comparison: Comparison | None,
    table: Confidences,
    seconds: float,
) -> dict[str, Any]:
    changes = {change.cores: change for change in comparison.pairs} if comparison else {}
    document: dict[str, Any] = {
        "model": os.fspath(out),
        "pairs": [
            {
                "cores": list(pair.cores),
                "sound": _ends(pair.sound),
                "confident": _ends(pair.confident),
                "confidence": pair.confidence,
                "testers": {name: _ends(bound) for name, bound in pair.testers.items()},
                "d": round(pair.d_ticks, 3),
                "half_width": round(pair.half_width_ticks, 3),
                "transfer_ticks": round(pair.transfer_ticks, 1),
                "round_trip_ticks": pair.round_trip_ticks,
                "wander_ticks": round(pair.wander_ticks, 2),
                "seen_span_ticks": round(max(pair.seen) - min(pair.seen), 2) if pair.seen else None,
                "autocorrelation": round(pair.autocorrelation, 4),
                "shift_ticks": round(changes[pair.cores].shift_ticks, 3) if pair.cores in changes else None,
            }
            for pair in model.pairs
        ],
        "granularity_ticks": model.granule.ticks,
        "hz": model.hz,
        "rounds": min(pair.tester_rounds for pair in model.pairs),
        "played_rounds": sum(pair.rounds for pair in model.pairs),
        "dropped_rounds": sum(pair.dropped for pair in model.pairs),
        "seconds": round(seconds, 3),
        "changed": comparison.changed if comparison else None,
        "suspended": comparison.suspended if comparison else None,
        "smallest_detectable_ticks": round(
            max(change.smallest_detectable_ticks for change in comparison.pairs)
            if comparison
            else smallest_detectable_ticks(model, args.confidence),
            3,
        ),
        "injected": model.injected,
    }
    if args.table:
        document["table"] = [
            {"n": n, "m": m, "confidence": confidence, "interval": [round(lo, 3), round(hi, 3)]}
            for (n, m), row in table.items()
            for confidence, (lo, hi) in row.items()
        ]
    return document


def _ends(interval: Interval) -> list[int | None]:
    """Null for an end that no round has bounded."""
    return [interval.lo if interval.lo > -FAR else None, interval.hi if interval.hi < FAR else None]


def _show(speaker: Speaker, model: ClockModel, comparison: Comparison | None, table: Confidences) -> None:
    speaker.show(_pair_table(model))
    speaker.show(_tester_table(model))
    if table:
        speaker.show(_confidence_table(table, model.pairs[0].cores))
    for pair in model.pairs:
        if pair.wander_ticks:
            speaker.note(
                f"the skew of the cores {pair.cores[0]} and {pair.cores[1]} moved by {pair.wander_ticks:.1f} ticks "
                f"meanwhile{GUESTS_MOVE if model.guest else ''}; `sound` is widened by that"
            )
    if comparison is None:
        return
    if comparison.suspended:
        speaker.warn("the machine was suspended between the two calibrations; that resets counters")
    for change in comparison.pairs:
        verdict = "[red]CHANGED[/]" if change.changed else "[green]unchanged[/]"
        speaker.show(
            f"cores {change.cores[0]} and {change.cores[1]}: {verdict}; shifted by {change.shift_ticks:+.1f} ticks, "
            f"smallest shift seen for certain {change.smallest_detectable_ticks:.1f}"
        )


def _pair_table(model: ClockModel) -> Table:
    table = Table(
        title=f"skew in ticks of {1e9 / model.hz:.3f} ns (the counters step by {model.granule.ticks})",
        title_justify="left",
    )
    for column in ("cores", "sound", "confident", "at", "estimate", "transfer", "round trip", "dropped"):
        table.add_column(column, justify="right")
    for pair in model.pairs:
        table.add_row(
            f"{pair.cores[0]} → {pair.cores[1]}",
            _interval(pair.sound),
            _interval(pair.confident),
            f"{pair.confidence:g}",
            f"{pair.d_ticks:+.2f} ± {pair.half_width_ticks:.2f}",
            f"{pair.transfer_ticks:.0f}",
            f"{pair.round_trip_ticks}",
            f"{pair.dropped} of {pair.rounds:,}",
        )
    return table


def _tester_table(model: ClockModel) -> Table:
    table = Table(
        title="bounds by tester (Eq. 3, raw); the bare forms are no part of sound, and lo > hi proves them wrong",
        title_justify="left",
    )
    table.add_column("cores", justify="right")
    names = list(model.pairs[0].testers)
    for name in names:
        table.add_column(name, justify="right", style="dim" if name in UNSOUND_TESTERS else None)
    for pair in model.pairs:
        table.add_row(f"{pair.cores[0]} → {pair.cores[1]}", *(_interval(pair.testers[name]) for name in names))
    return table


def _confidence_table(confidences: Confidences, cores: tuple[int, int]) -> Table:
    table = Table(
        title=f"Eq. 9 for the cores {cores[0]} → {cores[1]}: N rounds a sample, M samples", title_justify="left"
    )
    table.add_column("N", justify="right")
    table.add_column("M", justify="right")
    for confidence in TABLE_CONFIDENCES:
        table.add_column(f"{confidence:g}", justify="right")
    for (n, m), row in confidences.items():
        table.add_row(str(n), str(m), *(f"\\[{lo:.2f}, {hi:.2f}]" for lo, hi in row.values()))
    return table


def _interval(interval: Interval) -> str:
    return f"\\[{interval.lo}, {interval.hi}]" if interval.bounded else "one-sided"
