"""What a stamp costs, as a ratio to a bare RDTSC: 20 interleaved repeats in one run, median and quartiles.

Beside it the paper's order of costs (ReCBuLC §6.3: 2(c) is dearest, 2(e) cheapest of the sound ones).
"""

from __future__ import annotations

import os

from report import median_and_spread, print_machine

from recbulc.tsc_probe.native import NativeProber
from recbulc.tsc_probe.sequences import SEQUENCES, SOUND_SEQUENCES

REPEATS = 20


def main() -> None:
    """Print the table."""
    print_machine()
    prober = NativeProber()
    core = min(os.sched_getaffinity(0))
    ns: dict[str, list[float]] = {sequence: [] for sequence in SEQUENCES}
    for _ in range(REPEATS):
        for sequence in SEQUENCES:
            ns[sequence].append(prober.stamp_cost_ns(core, sequence))
    print(f"{'sequence':10}{'ns':>24}{'ratio to rdtsc':>24}")
    for sequence in SEQUENCES:
        ratios = [mine / base for mine, base in zip(ns[sequence], ns["rdtsc"], strict=True)]
        sound = "" if sequence in SOUND_SEQUENCES else "   (naive: claims wrong orders)"
        print(f"{sequence:10}{median_and_spread(ns[sequence]):>24}{median_and_spread(ratios):>24}{sound}")


if __name__ == "__main__":
    main()
