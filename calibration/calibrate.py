"""A whole calibration: every pair of the chosen cores, both schemes, one clock model."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

from recbulc.calibration.episode import Effort, measure_pair, watch_skew
from recbulc.calibration.model import DRIFT_LIMIT_PPM, ClockModel, drift_ticks_per_ns
from recbulc.calibration.pair import UNSOUND_TESTERS, PairClock, means_and_noise, split_at_steps, summarise
from recbulc.errors import InputError, RecbulcError
from recbulc.tsc_probe.counter import measure_frequency_hz, measure_granule
from recbulc.tsc_probe.machine import SUSPEND_NOISE_NS, Machine, suspended_ns
from recbulc.tsc_probe.native import Prober
from recbulc.tsc_probe.rounds import Tester

CONFIDENCE = 0.99999
MOST_CONFIDENCE = 1 - 1e-9


def calibrate(
    machine: Machine,
    prober: Prober,
    cores: tuple[int, ...],
    *,
    effort: Effort | None = None,
    confidence: float = CONFIDENCE,
    width_bits: int = 64,
    injected: bool = False,
    drift_limit_ppm: float = DRIFT_LIMIT_PPM,
    on_episode: Callable[[], None] = lambda: None,
) -> ClockModel:
    """Measure every pair of `cores` (ReCBuLC §3.3).

    With three or more cores a third one releases the flag of Scheme 2, as in the paper; with two they do it in turn.
    """
    check_confidence(confidence)
    effort = effort or Effort()
    if not machine.is_guest:
        effort = replace(effort, idle_seconds=0.0)
    slept = suspended_ns()
    granule = measure_granule(prober, cores)
    hz = measure_frequency_hz(prober, cores[0], width_bits)
    drift = drift_ticks_per_ns(hz, drift_limit_ppm)
    untrusted = untrusted_testers(machine)
    pairs: list[PairClock] = []
    for pair in combinations(cores, 2):
        triggers = machine.trigger_groups(pair, cores)
        episodes = measure_pair(prober, pair, triggers, effort, granule, width_bits, on_episode)
        pairs.append(summarise(pair, episodes, prober.now_ns(), confidence, granule, drift, untrusted))
    if abs(suspended_ns() - slept) > SUSPEND_NOISE_NS:
        raise RecbulcError("the machine was suspended during the calibration", "repeat it")
    model = ClockModel(
        machine=machine.identity,
        created=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        suspended_ns=slept,
        hz=hz,
        granule=granule,
        width_bits=width_bits,
        drift_limit_ppm=drift_limit_ppm,
        invariant=machine.invariant,
        guest=machine.is_guest,
        injected=injected,
        lfence_orders=machine.lfence_orders,
        pairs=tuple(pairs),
    )
    loops = model.open_loops()
    if loops:
        x, y, z = loops[0]
        raise RecbulcError(
            f"the intervals of the cores {x}, {y} and {z} contradict each other: the clocks changed meanwhile",
            "repeat the calibration",
        )
    return model


def look_again(
    machine: Machine, prober: Prober, model: ClockModel, pair: tuple[int, int], seconds: float
) -> list[list[float]]:
    """Stretches of d of a pair of `model`, over many idle spells: a guest's cores may move in each of them."""
    triggers = machine.trigger_groups(pair, model.cores)
    bursts = watch_skew(prober, pair, triggers, seconds, model.granule, model.width_bits)
    return split_at_steps(*means_and_noise(bursts)) if bursts else []


def untrusted_testers(machine: Machine) -> frozenset[str]:
    """Who takes no part in `sound` here: the bare forms, and where LFENCE may not order, all that need it."""
    if machine.lfence_orders:
        return UNSOUND_TESTERS
    return UNSOUND_TESTERS | {tester.value for tester in Tester if tester.needs_lfence}


def check_confidence(confidence: float) -> None:
    """A coefficient of Eq. 8."""
    if not 0.5 <= confidence <= MOST_CONFIDENCE:
        raise InputError(f"a confidence of {confidence} makes no interval", "choose one from 0.5 to 0.999999999")
