import time

import numpy as np
import pytest
from tests.support import X

from recbulc.errors import MachineError
from recbulc.tsc_probe.counter import Granule, granule_of, measure_frequency_hz, measure_granule
from recbulc.tsc_probe.native import NativeProber
from recbulc.tsc_probe.simulated import Counters, SimulatedClock, SimulatedProber


def simulated(counters, **how):
    return SimulatedProber({0: SimulatedClock(12_345.0)}, counters, now=1e6, **how)


def test_a_bumped_reading_does_not_hide_the_step():
    """Where two reads within one step differ by 1, gcd and minimum are both 1."""
    prober = simulated(Counters(granule_ticks=26, bumps=True))
    readings = prober.readings(0, 20_000)
    assert np.gcd.reduce(np.diff(readings)) == 1
    assert np.diff(readings).min() == 1
    assert granule_of(readings) == Granule(ticks=26, bump_ticks=1)


def test_a_counter_that_counts_every_tick():
    assert granule_of(simulated(Counters()).readings(0, 20_000)) == Granule(1, 0)


def test_a_counter_slower_than_its_readings():
    """Most readings are equal; only the others tell the step."""
    assert granule_of(simulated(Counters(granule_ticks=5_000)).readings(0, 20_000)).ticks == 5_000


def test_a_scaled_counter_has_a_step_that_is_no_whole_number():
    step = 25.961  # 100 MHz scaled to 2596.1 MHz by a hypervisor
    times = np.cumsum(np.random.default_rng(0).uniform(10, 1300, 20_000))
    readings = np.floor(np.floor(times / step) * step).astype(np.uint64)
    assert granule_of(readings).ticks == 26


def test_a_narrow_counter_that_overflows_while_it_is_read():
    prober = SimulatedProber({0: SimulatedClock(2.0**24 - 5e5)}, Counters(26, True, width_bits=24), now=0.0)
    readings = prober.readings(0, 20_000)
    assert np.any(readings[1:] < readings[:-1])
    assert granule_of(readings) == Granule(26, 1)
    assert measure_frequency_hz(prober, 0, width_bits=24) == pytest.approx(1e9, rel=1e-3)


def test_bumps_that_add_up_are_counted():
    """Some counters add one for every further read within a step."""
    readings = np.array([1000 * step + bump for step in range(300) for bump in range(1 + step % 4)], dtype=np.uint64)
    assert granule_of(readings) == Granule(1000, 3)


def test_a_counter_too_coarse_or_dead_is_refused():
    for readings in (np.arange(20_000, dtype=np.uint64) // 200 * 1_000_000, np.full(20_000, 7, dtype=np.uint64)):
        with pytest.raises(MachineError, match="steps by"):
            granule_of(readings)


def test_this_machine():
    prober = NativeProber()
    granule = measure_granule(prober, (X,))
    assert 1 <= granule.ticks < 10_000
    readings = prober.readings(X, 1_000)
    assert np.all(np.diff(readings.astype(np.int64)) >= 0)
    tsc, clock = prober.counter_and_clock(X), time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    hz = measure_frequency_hz(prober, X)
    ticks = prober.counter_and_clock(X)[0] - tsc[0]
    elapsed = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) - clock
    # the outer stretch holds the inner one, so it cannot have had fewer ticks per second than half of it
    assert hz == pytest.approx(ticks / elapsed * 1e9, rel=0.5)
