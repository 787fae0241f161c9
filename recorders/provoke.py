"""Which perturbation each run of `record --until-fail --provoke` gets (DESIGN §3, "Provoking").

A strategy is a setting of the knobs on the control page and nothing else; the runtime does the delaying. A portfolio
draws one for every run from the seed, and is told how the run went: this one only learns how long and how busy the
program is, so that delays are as many for a long program as for a short one; a portfolio that learns more can take its
place.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from recbulc.errors import InputError
from recbulc.recorders.control import Knobs
from recbulc.recorders.runner import RunResult

PPM = 1_000_000
UNSEEN_EVENTS = 5_000  # assumed of a program that was never run
MOST_DELAYS = 64.0  # per run, on average
DELAY_US = (10.0, 1_000.0)  # the longest delay is drawn from here, logarithmically
START_US = (20.0, 2_000.0)
SLOWDOWN = 9.0  # a provoked run may take ten times as long as a plain one ...
LEAST_BUDGET_US = 20_000.0  # ... and even the shortest may be delayed by this much


@dataclass(frozen=True)
class Seen:
    """What earlier runs showed of the program: the longest plain run, and its events."""

    seconds: float = 0.0
    accesses: int = 0
    syncs: int = 0

    @property
    def budget_us(self) -> float:
        """How long all delays of a run may take together."""
        return max(SLOWDOWN * self.seconds * 1e6, LEAST_BUDGET_US)


@dataclass(frozen=True)
class Plan:
    """What one run is to be."""

    strategy: str
    knobs: Knobs


class Portfolio(Protocol):
    """Chooses for every run, and learns from it."""

    def plan(self, run: int) -> Plan:
        """For run number `run`, from 0; the same for the same seed and the same history."""

    def learn(self, plan: Plan, result: RunResult, accesses: int, syncs: int) -> None:
        """How a planned run went, with the events it logged."""


def plain(_rng: random.Random, _seen: Seen) -> dict[str, int]:
    """No delay: perturbing lowers some natural rates."""
    return {}


def access(rng: random.Random, seen: Seen) -> dict[str, int]:
    """Short delays before and behind random accesses, half of the time with start offsets."""
    delay_us = _log_uniform(rng, *DELAY_US)
    ppm = _rate_ppm(rng, 2 * seen.accesses, delay_us, seen.budget_us)
    return {"access_delay_ppm": ppm, "delay_us": round(delay_us)} | (start(rng, seen) if rng.random() < 0.5 else {})


def sync(rng: random.Random, seen: Seen) -> dict[str, int]:
    """Delays at synchronisation calls."""
    delay_us = _log_uniform(rng, *DELAY_US)
    return {"sync_delay_ppm": _rate_ppm(rng, seen.syncs, delay_us, seen.budget_us), "delay_us": round(delay_us)}


def start(rng: random.Random, _seen: Seen) -> dict[str, int]:
    """Threads begin at random offsets."""
    return {"start_us": round(_log_uniform(rng, *START_US))}


Strategy = Callable[[random.Random, Seen], dict[str, int]]
STRATEGIES: dict[str, tuple[Strategy, float]] = {  # with their shares
    "plain": (plain, 0.10),
    "access": (access, 0.50),
    "sync": (sync, 0.25),
    "start": (start, 0.15),
}


class Mixed:
    """The strategies in their shares, or the one asked for; the first run is always plain, and learned from."""

    def __init__(self, seed: int, forced: str | None = None) -> None:
        if forced is not None and forced not in STRATEGIES:
            raise InputError(f"there is no strategy {forced!r}", f"choose of {', '.join(STRATEGIES)}")
        self._seed = seed
        self._names = [forced] if forced else list(STRATEGIES)
        self.seen = Seen()

    def plan(self, run: int) -> Plan:
        """See Portfolio."""
        rng = random.Random(f"{self._seed}/{run}")
        name = rng.choices(self._names, [STRATEGIES[name][1] for name in self._names])[0] if run else "plain"
        return Plan(name, Knobs(seed=rng.getrandbits(63), **STRATEGIES[name][0](rng, self.seen)))

    def learn(self, plan: Plan, result: RunResult, accesses: int, syncs: int) -> None:
        """Only plain runs show how long the program takes; a run that hung shows nothing."""
        if plan.strategy == "plain" and result.how in {"exit", "signal"}:
            seen = self.seen
            self.seen = Seen(max(seen.seconds, result.seconds), max(seen.accesses, accesses), max(seen.syncs, syncs))


def _rate_ppm(rng: random.Random, events: int, delay_us: float, budget_us: float) -> int:
    """So that a run of `events` has from one delay to MOST_DELAYS, as many as the budget allows."""
    most = min(MOST_DELAYS, budget_us / (delay_us / 2))
    wanted = _log_uniform(rng, 1.0, max(most, 1.0))
    return max(1, min(PPM // 2, round(PPM * wanted / (events or UNSEEN_EVENTS))))


def _log_uniform(rng: random.Random, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))
