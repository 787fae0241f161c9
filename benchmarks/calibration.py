"""How good calibration is on this machine: widths, injected skews found again, changes noticed, false alarms.

Every line is a rate or a ratio measured in this run. `--trials` scales the whole (100 takes about 40 minutes).
"""

from __future__ import annotations

import argparse
import os
import random
import time

from report import median_and_spread, print_machine

from recbulc.calibration.calibrate import CONFIDENCE, calibrate, look_again
from recbulc.calibration.change import (
    MOST_LOOKS,
    Comparison,
    Look,
    compare_models,
    looks_within,
    smallest_detectable_ticks,
)
from recbulc.calibration.episode import Effort
from recbulc.calibration.model import ClockModel
from recbulc.calibration.moves import MoveHistory, recall
from recbulc.tsc_probe.machine import read_machine, suspended_ns
from recbulc.tsc_probe.native import NativeProber
from recbulc.tsc_probe.skew import NO_SKEWS, Skew, Skews

X, Y = sorted(os.sched_getaffinity(0))[:2]
MACHINE = read_machine()
SHORT = Effort(rounds=20_000)
PAUSE_SECONDS = 3.0


HISTORIES = [MoveHistory(MACHINE.identity, suspended_ns())]  # the last one is this run's


def measure(skews: Skews = NO_SKEWS, effort: Effort | None = None) -> ClockModel:
    """Calibrate one pair, with skews injected."""
    return calibrate(
        MACHINE, NativeProber(skews), (X, Y), effort=effort, width_bits=skews.width_bits, injected=skews.injected
    )


def looker(model: ClockModel, skews: Skews = NO_SKEWS) -> Look:
    """Watches the cores of `model`."""
    return lambda pair, seconds: look_again(MACHINE, NativeProber(skews), model, pair, seconds)


def measure_and_recall() -> ClockModel:
    """What `recbulc calibrate` does: with the moves that this run has seen so far."""
    model = measure()
    if model.guest:
        model, history = recall(HISTORIES[-1], model, CONFIDENCE, looker(model), MOST_LOOKS)
        HISTORIES.append(history)
    return model


def compare(old: ClockModel, skews: Skews) -> tuple[Comparison, float]:
    """What `recbulc calibrate --compare` does, and how long it takes."""
    start = time.monotonic()
    new = measure(skews) if skews.injected else measure_and_recall()
    verdict = compare_models(old, new, CONFIDENCE, looker(new, skews), looks_within(time.monotonic() - start))
    return verdict, time.monotonic() - start


def offset(ticks: int, width_bits: int = 64) -> Skews:
    """Core Y ahead by `ticks`."""
    return Skews({str(Y): Skew(offset_ticks=ticks)}, width_bits)


def widths(repeats: int) -> None:
    """Default calibrations: how long, how narrow."""
    seconds, sound, confident = [], [], []
    within = narrow = 0
    for _ in range(repeats):
        start = time.monotonic()
        model = measure()
        seconds.append(time.monotonic() - start)
        pair = model.pairs[0]
        granules = 2 * model.granule.ticks
        sound.append(pair.sound.width / pair.round_trip_ticks)
        confident.append(float(pair.confident.width))
        within += pair.sound.width <= 1.3 * pair.round_trip_ticks + granules
        narrow += pair.confident.width <= 10 + granules
    print(f"default calibration of one pair: {median_and_spread(seconds)} s")
    print(
        f"sound width / shortest round trip: {median_and_spread(sound)}; within 1.3 + 2 granules in {within}/{repeats}"
    )
    print(f"confident width: {median_and_spread(confident)} ticks; within 10 + 2 granules in {narrow}/{repeats}")


def changes(trials: int) -> None:
    """Injected offsets noticed, and false alarms; every second trial has a pause of seconds before its comparison."""
    base = measure_and_recall()
    for ticks in (1_000, 100, base.granule.ticks):
        seen = meant = meant_seen = 0
        longest = 0.0
        smallest = []
        for trial in range(trials):
            old = measure_and_recall()
            smallest.append(smallest_detectable_ticks(old, CONFIDENCE))
            if ticks < min(smallest):
                break
            pause(trial)
            verdict, seconds = compare(old, offset(ticks if trial % 4 < 2 else -ticks))
            seen += verdict.changed
            meant += ticks >= smallest[-1]
            meant_seen += verdict.changed and ticks >= smallest[-1]
            longest = max(longest, seconds)
        if ticks < min(smallest):
            print(f"offset {ticks}: below the smallest detectable shift ({smallest[-1]:.1f} ticks), not tried")
            continue
        print(
            f"offset ±{ticks}: seen in {seen}/{trials} trials, {meant_seen}/{meant} where the smallest detectable "
            f"shift allows it (that was {median_and_spread(smallest)} ticks); the longest took {longest:.1f} s"
        )
    alarms, extents = 0, []
    comparisons = max(1, trials // 2)
    for trial in range(comparisons):
        old = measure_and_recall()
        pause(trial)
        verdict, _ = compare(old, NO_SKEWS)
        alarms += verdict.changed
        extents.append(verdict.pairs[0].extent_ticks)
    print(f"no offset: {alarms} alarms in {comparisons} comparisons, d differed by {median_and_spread(extents)} ticks")
    seen_ticks = [d for values in HISTORIES[-1].seen.values() for d in values]
    if seen_ticks:
        print(f"moves seen: d was {min(seen_ticks):.1f} to {max(seen_ticks):.1f} ticks, {len(seen_ticks)} values")


def pause(trial: int) -> None:
    """Time for the host to move our cores."""
    if trial % 2:
        time.sleep(PAUSE_SECONDS)


def offsets(trials: int) -> None:
    """Any offset, 64-bit and 32-bit counters: is the result the uninjected one, shifted?"""
    for width in (64, 32):
        intersects = agrees = 0
        for _ in range(trials):
            ticks = random.randint(-(10**9), 10**9)
            plain, shifted = measure(effort=SHORT).pairs[0], measure(offset(ticks, width), SHORT).pairs[0]
            intersects += plain.sound.lo + ticks <= shifted.sound.hi and shifted.sound.lo <= plain.sound.hi + ticks
            halves = (plain.confident.width + shifted.confident.width) / 2
            agrees += abs(shifted.confident.centre - plain.confident.centre - ticks) <= halves
        print(
            f"{width}-bit counter, offsets in ±10^9: sound intersects the shifted one in {intersects}/{trials}, "
            f"centres of confident agree in {agrees}/{trials}"
        )


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--only", choices=["widths", "offsets", "changes"], help="one part of it")
    args = parser.parse_args()
    print_machine()
    if args.only in {None, "widths"}:
        widths(max(5, args.trials // 5))
    if args.only in {None, "offsets"}:
        offsets(args.trials)
    if args.only in {None, "changes"}:
        changes(args.trials)


if __name__ == "__main__":
    main()
