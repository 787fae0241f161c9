"""How benchmarks are reported: the machine beside every figure, ratios with their spread."""

from __future__ import annotations

import numpy as np

from recbulc.tsc_probe.machine import read_machine


def print_machine() -> None:
    """Which machine the figures below belong to."""
    machine = read_machine()
    identity = machine.identity
    print(f"machine: {identity.cpu}, {identity.cores} cores, hypervisor {identity.hypervisor}")


def median_and_spread(values: list[float]) -> str:
    """The median, with the quartiles as spread."""
    low, middle, high = np.percentile(values, [25, 50, 75])
    return f"{middle:.2f} [{low:.2f}, {high:.2f}]"
