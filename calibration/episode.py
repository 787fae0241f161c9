"""Episodes: a pair's clocks are measured in many short stretches, each by new threads on new pages.

What varies from run to run (where the flag lies, how threads start, on a guest: which of the host's cores ours are at
the moment) thus varies between the episodes of one calibration too, and becomes part of its result. A guest's cores
move when they have been idle, so its first episodes have an idle spell before them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from recbulc.calibration.interval import Interval
from recbulc.calibration.scheme1 import handoff_bounds, race_bounds, shortest_round_trip
from recbulc.calibration.scheme2 import (
    LEAST_SAMPLES,
    SkewSamples,
    Ticks,
    differences,
    find_spikes,
    interleave,
    skew_samples,
)
from recbulc.errors import InputError
from recbulc.tsc_probe.counter import Granule
from recbulc.tsc_probe.native import FLAG_TOUR, Prober
from recbulc.tsc_probe.rounds import FlagRounds, Tester

LEAST_ROUNDS, MOST_ROUNDS = 1_000, 10**9
ROUNDS_PER_CALL = 25_600  # some 50 ms: Ctrl-C is answered between calls
SLOW_TESTERS = {Tester.B: 64}  # CPUID traps to the hypervisor: this many times fewer rounds
LEAST_TOURS = 4  # of the flag in half an episode: Eq. 9 needs some samples
FLAG_SHARE = 4  # Scheme 2 lives on many rounds, and they are short: this many times more of them
HANDOFF = "handoff"
BURST_TOURS = 40  # of the flag: some milliseconds, in which d is known to about a tick
BURST_IDLE_SECONDS = 0.02  # before every burst: moves come with waking up

Triggers = tuple[tuple[int, ...], ...]  # groups of cores (Machine.trigger_groups)


@dataclass(frozen=True)
class Effort:
    """How much is measured, per pair."""

    rounds: int = 100_000  # of every tester of Scheme 1; Scheme 2 plays FLAG_SHARE times as many
    seconds: float = 8.0  # no further episode of the default effort is started after this long
    idle_seconds: float = 0.1  # before each of the first episodes; 0 on bare metal
    idle_share: float = 0.25  # of the episodes are these first ones

    def __post_init__(self) -> None:
        if not LEAST_ROUNDS <= self.rounds <= MOST_ROUNDS:
            raise InputError(
                f"{self.rounds} rounds are too {'few to bound a skew' if self.rounds < LEAST_ROUNDS else 'many'}",
                f"use {LEAST_ROUNDS} to {MOST_ROUNDS}",
            )

    @property
    def episodes(self) -> int:
        """Enough to see what varies between them, and as many more as many rounds need."""
        return max(8, min(32, self.rounds // 1_000), -(-self.rounds // ROUNDS_PER_CALL))

    @property
    def rounds_per_episode(self) -> int:
        """In whole tours of the flag."""
        return -(-self.rounds // self.episodes // FLAG_TOUR) * FLAG_TOUR

    @property
    def patience_seconds(self) -> float:
        """Who asks for more rounds than the default gives them time."""
        return self.seconds * max(1.0, self.rounds / Effort.rounds)

    def idle_before(self, episode: int) -> float:
        """The first episodes start after an idle spell."""
        return self.idle_seconds if episode < self.episodes * self.idle_share else 0.0


@dataclass(frozen=True)
class Episode:
    """What one episode gave: Eq. 3 per tester (raw, not widened) between two runs of Scheme 2.

    `d_before` and `d_after` are samples of D on either side of the bounds: if the skew stepped meanwhile, they differ.
    """

    began_ns: int
    bounds: dict[str, Interval]
    d_before: Ticks
    d_after: Ticks
    transfer_ticks: float
    round_trip_ticks: int
    tester_rounds: int
    rounds: int
    dropped: int


def play_flag(prober: Prober, pair: tuple[int, int], triggers: Triggers, rounds: int, width_bits: int) -> FlagRounds:
    """Scheme 2 with the trigger core drawn at random (ReCBuLC §3.3.2).

    Without a core to spare the pair triggers itself in turn, and so it does where a third core's flag reaches the same
    worker first all the time: then there are no two spikes, and nothing tells who was first.
    """
    if triggers:
        parts = [prober.flag(pair, random.choice(group), rounds // len(triggers)) for group in triggers]
        shuffled = interleave(parts)
        if find_spikes(differences(shuffled, width_bits)).apart:
            return shuffled
    return prober.flag(pair, None, rounds)


def play_episode(
    prober: Prober, pair: tuple[int, int], triggers: Triggers, rounds: int, granule: Granule, width_bits: int
) -> Episode:
    """Every tester once, `rounds` rounds each, between the two halves of Scheme 2."""

    def half() -> SkewSamples:
        flags = play_flag(prober, pair, triggers, max(FLAG_SHARE * rounds // 2, LEAST_TOURS * FLAG_TOUR), width_bits)
        return skew_samples(flags, FLAG_TOUR, granule.ticks, width_bits)

    began_ns = prober.now_ns()
    before = half()
    bounds: dict[str, Interval] = {}
    played = dropped = 0
    for tester in Tester:
        race = prober.race(pair, tester, max(8, rounds // SLOW_TESTERS.get(tester, 1)))
        bounds[tester.value] = race_bounds(race, width_bits)
        played += race.first.size
        dropped += int(np.count_nonzero(race.migrated))
    handoff = prober.handoff(pair, rounds)
    bounds[HANDOFF] = handoff_bounds(handoff, width_bits)
    after = half()
    return Episode(
        began_ns=began_ns,
        bounds=bounds,
        d_before=before.d,
        d_after=after.d,
        transfer_ticks=(before.transfer_ticks + after.transfer_ticks) / 2,
        round_trip_ticks=shortest_round_trip(handoff, width_bits),
        tester_rounds=rounds,
        rounds=played + rounds + before.rounds + after.rounds,
        dropped=dropped + int(np.count_nonzero(handoff.migrated)) + before.dropped + after.dropped,
    )


def measure_pair(
    prober: Prober,
    pair: tuple[int, int],
    triggers: Triggers,
    effort: Effort,
    granule: Granule,
    width_bits: int,
    on_episode: Callable[[], None] = lambda: None,
) -> list[Episode]:
    """Episode after episode, with the trigger cores drawn anew for each."""
    start = time.monotonic()
    episodes: list[Episode] = []
    play_episode(prober, pair, (), FLAG_TOUR, granule, width_bits)  # warm-up: caches, branch predictors, frequency
    for number in range(effort.episodes):
        if len(episodes) >= 4 and time.monotonic() - start > effort.patience_seconds:
            break
        prober.idle(effort.idle_before(number))
        episodes.append(play_episode(prober, pair, triggers, effort.rounds_per_episode, granule, width_bits))
        on_episode()
    return episodes


def watch_skew(
    prober: Prober, pair: tuple[int, int], triggers: Triggers, seconds: float, granule: Granule, width_bits: int
) -> list[Ticks]:
    """Samples of d in short bursts, with an idle spell before each, in which a guest's cores may move."""
    until_ns = prober.now_ns() + seconds * 1e9
    bursts = []
    while prober.now_ns() < until_ns:
        prober.idle(BURST_IDLE_SECONDS)
        flags = play_flag(prober, pair, triggers, BURST_TOURS * FLAG_TOUR, width_bits)
        d = skew_samples(flags, FLAG_TOUR, granule.ticks, width_bits).d
        if d.size >= LEAST_SAMPLES:
            bursts.append(d)
    return bursts
