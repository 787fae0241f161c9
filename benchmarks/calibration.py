"""How good calibration is on this machine: widths, injected skews found again, changes noticed, false alarms.

Every line is a rate or a ratio measured in this run. `--trials` scales the whole (100 takes about 20 minutes).
"""

from __future__ import annotations

import argparse
import os
import random
import time

from report import median_and_spread, print_machine

from recbulc.calibration.calibrate import CONFIDENCE, calibrate, look_again
from recbulc.calibration.change import Comparison, compare_models, smallest_detectable_ticks
from recbulc.calibration.episode import Effort
from recbulc.calibration.model import ClockModel
from recbulc.tsc_probe.machine import read_machine
from recbulc.tsc_probe.native import NativeProber
from recbulc.tsc_probe.skew import NO_SKEWS, Skew, Skews

X, Y = sorted(os.sched_getaffinity(0))[:2]
MACHINE = read_machine()
SHORT = Effort(rounds=20_000)


def measure(skews: Skews = NO_SKEWS, effort: Effort | None = None) -> ClockModel:
    """Calibrate one pair, with skews injected."""
    return calibrate(
        MACHINE, NativeProber(skews), (X, Y), effort=effort, width_bits=skews.width_bits, injected=skews.injected
    )


def compare(old: ClockModel, skews: Skews) -> tuple[Comparison, float]:
    """What `recbulc calibrate --compare` does, and how long it takes."""
    start = time.monotonic()
    new = measure(skews)
    verdict = compare_models(old, new, CONFIDENCE, lambda pair: look_again(MACHINE, NativeProber(skews), new, pair))
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
    """Injected offsets noticed, and false alarms."""
    base = measure()
    smallest = smallest_detectable_ticks(base, CONFIDENCE)
    print(f"smallest detectable shift: {smallest:.1f} ticks")
    for ticks in (1_000, 100, base.granule.ticks):
        if ticks < smallest:
            print(f"offset {ticks}: below the smallest detectable shift, not tried")
            continue
        seen, longest = 0, 0.0
        for trial in range(trials):
            old = measure()
            verdict, seconds = compare(old, offset(ticks if trial % 2 else -ticks))
            seen += verdict.changed
            longest = max(longest, seconds)
        print(f"offset ±{ticks}: seen in {seen}/{trials} trials, the longest took {longest:.1f} s")
    alarms, shifts = 0, []
    for _ in range(max(1, trials // 2)):
        verdict, _ = compare(measure(), NO_SKEWS)
        alarms += verdict.changed
        shifts.append(abs(verdict.pairs[0].shift_ticks))
    print(f"no offset: {alarms} alarms in {max(1, trials // 2)} comparisons, shifts {median_and_spread(shifts)} ticks")


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
    trials = parser.parse_args().trials
    print_machine()
    widths(max(5, trials // 5))
    offsets(trials)
    changes(trials)


if __name__ == "__main__":
    main()
