"""Which stamp sequences this processor gets wrong (ReCBuLC §3.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from recbulc.tsc_probe.native import NativeProber
from recbulc.tsc_probe.overflow import difference
from recbulc.tsc_probe.rounds import LitmusRounds, Shape
from recbulc.tsc_probe.sequences import SEQUENCES, SOUND_SEQUENCES

ROUNDS = 200_000  # of each shape
CHUNK = 50_000


@dataclass(frozen=True)
class LitmusResult:
    """One sequence: rounds played, orders it claimed wrongly, and what a stamp costs."""

    sequence: str
    rounds: int
    violations: int
    ns: float

    @property
    def promised(self) -> bool:
        """Is the sequence meant to keep the order?"""
        return self.sequence in SOUND_SEQUENCES


def violations(rounds: LitmusRounds, hi_ticks: int, width_bits: int = 64) -> int:
    """Rounds whose stamps prove an order that the read contradicts.

    stamp0 + hi < stamp1 claims that core 0's access came before core 1's. In the store shape the read must then see
    the write, in the load shape it must not.
    """
    claimed = difference(rounds.stamp1, rounds.stamp0, width_bits) > hi_ticks
    wrong = ~rounds.saw if rounds.shape is Shape.STORE else rounds.saw
    return int(np.count_nonzero(claimed & wrong))


def run_litmus(
    prober: NativeProber,
    pair: tuple[int, int],
    hi_ticks: int,
    width_bits: int = 64,
    rounds: int = ROUNDS,
    on_chunk: Callable[[], None] = lambda: None,
) -> list[LitmusResult]:
    """Both shapes for every sequence; `hi_ticks` is the upper end of the pair's sound interval."""
    results = []
    for sequence in SEQUENCES:
        wrong = played = 0
        for shape in Shape:
            left = rounds
            while left > 0:
                part = prober.litmus(pair, shape, sequence, min(CHUNK, left))
                wrong += violations(part, hi_ticks, width_bits)
                played += part.saw.size
                left -= part.saw.size
                on_chunk()
        results.append(LitmusResult(sequence, played, wrong, prober.stamp_cost_ns(pair[0], sequence)))
    return results
