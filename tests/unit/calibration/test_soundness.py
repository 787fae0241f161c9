"""Scheme 1 never excludes the truth, whatever the clocks are like."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import QUICK

from recbulc.calibration.episode import measure_pair
from recbulc.calibration.interval import intersection
from recbulc.calibration.model import drift_ticks_per_ns
from recbulc.calibration.pair import UNSOUND_TESTERS, drift_widening, summarise
from recbulc.tsc_probe.counter import Granule, granule_of
from recbulc.tsc_probe.simulated import Counters, SimulatedClock, SimulatedProber

machines = st.builds(
    SimulatedProber,
    clocks=st.fixed_dictionaries(
        {
            core: st.builds(
                SimulatedClock,
                offset_ticks=st.floats(0, 2e9, allow_nan=False),
                drift_ppm=st.floats(-0.05, 0.05, allow_nan=False),  # 0.1 ppm apart: the model's limit
            )
            for core in (0, 1)
        }
    ),
    counters=st.builds(
        Counters, granule_ticks=st.sampled_from([1, 2, 7, 26, 100]), bumps=st.booleans(), width_bits=st.just(64)
    ),
    transfer_ticks=st.floats(20, 400),
    noise_ticks=st.floats(0.1, 100),
    read_ticks=st.floats(5, 100),
    disturbed=st.floats(0, 0.1),
    asymmetry_ticks=st.floats(0, 60),
    seed=st.integers(0, 2**32),
    now=st.floats(1e6, 1e9),
)


def readings_at_one_instant(prober: SimulatedProber, at: float) -> np.ndarray:
    """TS_1 − TS_0 at many instants of a step or two, by counters that may bump either way."""
    times = at + np.repeat(np.linspace(0, 2 * prober.counters.granule_ticks, 501), 2)  # twice: bumps occur
    return prober.reading(1, times).astype(np.int64) - prober.reading(0, times).astype(np.int64)


@settings(max_examples=300, deadline=None)
@given(prober=machines, later_ns=st.sampled_from([0, 1_000_000, 30_000_000, 10**9, 10**10]))
def test_sound_contains_every_difference_of_readings_at_one_instant(prober, later_ns):
    """At the end of the calibration and, widened by the drift limit, any time later."""
    granule = Granule(prober.counters.granule_ticks, int(prober.counters.bumps))
    episodes = measure_pair(prober, (0, 1), (), QUICK, granule, 64)
    drift = drift_ticks_per_ns(1e9, 0.1)
    pair = summarise((0, 1), episodes, prober.now_ns(), 0.99999, granule, drift)
    sound = pair.sound.widened(drift_widening(later_ns * drift, granule, pair.round_trip_ticks))
    differences = readings_at_one_instant(prober, prober.now + later_ns)
    assert sound.lo <= differences.min()
    assert differences.max() <= sound.hi
    assert pair.sound.lo <= pair.confident.lo
    assert pair.confident.hi <= pair.sound.hi


@settings(max_examples=150, deadline=None)
@given(
    skews=st.lists(st.integers(-50, 50), min_size=8, max_size=8),
    within=st.lists(st.integers(0, 11), min_size=8, max_size=8),
    seed=st.integers(0, 2**32),
)
def test_sound_contains_every_skew_there_was_while_cores_moved(skews, within, seed):
    """A guest's skew steps any time, between any two calls of an episode."""
    prober = SteppingProber(skews, within, seed)
    granule = Granule(26, 1)
    episodes = measure_pair(prober, (0, 1), (), QUICK, granule, 64)
    pair = summarise((0, 1), episodes, prober.now_ns(), 0.99999, granule, 0.0)
    for skew in (*skews, prober.true_skew(0, 1)):
        assert skew in pair.sound


class SteppingProber(SimulatedProber):
    """In episode k, before call within[k] of it, the skew becomes skews[k]."""

    CALLS = 9  # of an episode: the flag twice, six races, one handoff

    def __init__(self, skews, within, seed):
        super().__init__({0: SimulatedClock(), 1: SimulatedClock()}, Counters(26, True), seed=seed, now=1e6)
        self._steps = {
            self.CALLS * (k + 1) + min(call, self.CALLS - 1): skew
            for k, (skew, call) in enumerate(zip(skews, within, strict=True))
        }
        self._calls = 0

    def _starts(self, rounds):
        skew = self._steps.get(self._calls)  # the first episode is the warm-up
        if skew is not None:
            self.clocks = {0: SimulatedClock(), 1: SimulatedClock(float(skew))}
        self._calls += 1
        return super()._starts(rounds)


@settings(max_examples=60, deadline=None)
@given(
    granule=st.integers(2, 100),
    bumps=st.booleans(),
    offset=st.integers(0, 10**9),
    seed=st.integers(0, 2**32),
)
def test_granule_is_found_with_and_without_bumps(granule, bumps, offset, seed):
    prober = SimulatedProber({0: SimulatedClock(float(offset))}, Counters(granule, bumps), seed=seed, now=1e6)
    found = granule_of(prober.readings(0, 20_000))
    assert found.ticks == granule
    assert found.bump_ticks <= 1


def test_bare_testers_would_exclude_the_truth():
    """Why they are never part of sound: on this machine, as on real ones, they contradict the skew."""
    prober = SimulatedProber({0: SimulatedClock(), 1: SimulatedClock(500.0)}, transfer_ticks=300, now=1e6)
    episodes = measure_pair(prober, (0, 1), (), QUICK, Granule(1, 0), 64)
    bare = intersection(e.bounds[name] for e in episodes for name in UNSOUND_TESTERS)
    assert 500 not in bare
    assert 500 in summarise((0, 1), episodes, prober.now_ns(), 0.99, Granule(1, 0), 0.0).sound
