import numpy as np
import pytest
from scipy import stats
from tests.support import QUICK

from recbulc.calibration.episode import measure_pair, play_flag
from recbulc.calibration.pair import summarise
from recbulc.calibration.scheme2 import (
    TABLE_CONFIDENCES,
    TABLE_M,
    TABLE_N,
    confidence_table,
    estimate,
    find_spikes,
    skew_samples,
    variance_within,
)
from recbulc.tsc_probe.counter import Granule
from recbulc.tsc_probe.rounds import FlagRounds
from recbulc.tsc_probe.simulated import Counters, SimulatedClock, SimulatedProber

SKEW = 37.0


def machine(seed=0, **how):
    return SimulatedProber(
        {0: SimulatedClock(), 1: SimulatedClock(SKEW), 2: SimulatedClock(-900.0)}, now=1e6, seed=seed, **how
    )


def flags(ts0, ts1, trigger):
    return FlagRounds(
        np.array(ts0, dtype=np.uint64),
        np.array(ts1, dtype=np.uint64),
        np.array(trigger, dtype=np.uint8),
        np.zeros(len(ts0), dtype=np.bool_),
    )


def test_eq_7_averages_the_directions_not_the_rounds():
    # three rounds of one direction, one of the other: means 130 and −90, so d = 20
    rounds = flags([1000] * 4, [1129, 1130, 1131, 910], [0, 0, 0, 1])
    samples = skew_samples(rounds, batch=4, granule_ticks=1)
    assert samples.d.tolist() == [20.0]
    assert samples.transfer_ticks == 110.0


def test_disturbed_rounds_are_dropped_and_counted():
    prober = machine(disturbed=0.02)
    samples = skew_samples(prober.flag((0, 1), None, 12_800), 128, 1)
    assert abs(samples.d.mean() - SKEW) < 1
    assert 0.02 * 12_800 < samples.dropped < 0.06 * 12_800


def test_spikes_are_found_when_nobody_knows_who_was_first():
    prober = machine()
    rounds = prober.flag((0, 1), 2, 20_000)
    assert not rounds.first_is_known
    spikes = find_spikes((rounds.ts1 - rounds.ts0).view(np.int64))
    assert spikes.left == pytest.approx(SKEW - 106, abs=4)
    assert spikes.right == pytest.approx(SKEW + 106, abs=4)
    assert spikes.boundary == pytest.approx(SKEW, abs=2)
    assert spikes.apart
    assert skew_samples(rounds, 128, 1).d.mean() == pytest.approx(SKEW, abs=1)


def test_spikes_of_very_different_height():
    random = np.random.default_rng(1)
    diffs = np.concatenate([random.normal(-70, 4, 19_000), random.normal(150, 4, 1_000)]).astype(np.int64)
    spikes = find_spikes(diffs)
    assert (spikes.left, spikes.right) == (pytest.approx(-70, abs=2), pytest.approx(150, abs=2))


def test_equal_differences_have_one_spike():
    spikes = find_spikes(np.full(100, 7, dtype=np.int64))
    assert (spikes.left, spikes.right) == (7, 7)
    assert not spikes.apart


@pytest.mark.parametrize("shape", ["normal", "uniform", "exponential"])
def test_one_hump_is_not_taken_for_two(shape):
    random = np.random.default_rng(6)
    diffs = {
        "normal": random.normal(100, 30, 20_000),
        "uniform": random.uniform(0, 200, 20_000),
        "exponential": random.exponential(60, 20_000),
    }[shape]
    assert not find_spikes(diffs.astype(np.int64)).apart


def test_a_trigger_that_favours_one_worker_is_not_believed():
    """The trigger is so near to core 0 that core 0 is always first: the pair then triggers itself."""
    prober = machine(package_of={0: 0, 1: 1, 2: 0})
    rounds = play_flag(prober, (0, 1), ((2,),), 12_800, 64)
    assert rounds.first_is_known
    assert skew_samples(rounds, 128, 1).d.mean() == pytest.approx(SKEW, abs=1)


def test_estimate_is_students_t_for_independent_samples():
    d = np.random.default_rng(3).normal(5, 2, 400)
    found = estimate(d, 0.99)
    n = found.effective_samples
    assert found.half_width == pytest.approx(stats.t.ppf(0.995, n - 1) * d.std(ddof=1) / n**0.5)
    assert n > 300


def test_samples_that_hang_together_widen_the_interval():
    random = np.random.default_rng(4)
    noise = random.normal(0, 1, 2_000)
    d = np.empty(2_000)
    d[0] = noise[0]
    for i in range(1, d.size):
        d[i] = 0.8 * d[i - 1] + noise[i]
    found = estimate(d, 0.99)
    assert found.autocorrelation == pytest.approx(0.8, abs=0.05)
    assert found.effective_samples == pytest.approx(2_000 / 9, rel=0.3)


def test_groups_that_differ_widen_the_interval():
    random = np.random.default_rng(5)
    groups = np.repeat(np.arange(10), 100)
    d = random.normal(0, 1, 1_000) + random.normal(0, 1, 10)[groups]
    means = [float(d[groups == group].mean()) for group in range(10)]
    variance, freedom = variance_within([means])
    assert freedom == 9
    random.shuffle(d)  # no neighbours left: only the groups tell
    assert estimate(d, 0.99).effective_samples > 300
    assert estimate(d, 0.99, (variance / 10, freedom)).effective_samples < 40


def test_a_step_among_independent_groups_is_spread_not_disaster():
    """Autocorrelation alone would say that there is next to nothing in 1,600 samples."""
    d = np.repeat([0.0, 50.0], 800) + np.random.default_rng(7).normal(0, 1, 1_600)
    variance, freedom = variance_within([[float(part.mean()) for part in d.reshape(16, 100)]])
    found = estimate(d, 0.99999, (variance / 16, freedom))
    assert 25 < found.half_width < 100


def test_variance_within_does_not_see_steps_between_groups():
    assert variance_within([[1.0, 3.0], [101.0, 103.0]]) == (2.0, 2)
    assert variance_within([[5.0]]) == (0.0, 0)


@pytest.mark.parametrize("triggers", [(), ((2,),)], ids=["in turn", "third core"])
@pytest.mark.parametrize("granule", [Granule(1, 0), Granule(26, 1)], ids=["fine", "coarse"])
def test_coverage_on_1000_simulated_calibrations(triggers, granule):
    """The interval holds the truth at least as often as it says: Eq. 9 itself within chance, `confident` always so."""
    raw = confident = 0
    for seed in range(250):  # of each of four kinds
        prober = machine(seed=seed, counters=Counters(granule.ticks, bumps=granule.bump_ticks > 0))
        episodes = measure_pair(prober, (0, 1), triggers, QUICK, granule, 64)
        pair = summarise((0, 1), episodes, prober.now_ns(), 0.95, granule, 0.0)
        raw += abs(pair.d_ticks - SKEW) <= pair.half_width_ticks
        confident += SKEW in pair.confident
    assert raw >= 227  # 95 % less three standard deviations of the count itself
    assert confident >= 238


def test_table_6_has_every_cell_and_narrows_as_the_paper_says():
    table = confidence_table(machine().flag((0, 1), None, 4_000), 1)
    assert set(table) == {(n, m) for n in TABLE_N for m in TABLE_M}

    def width(n, m, confidence):
        lo, hi = table[(n, m)][confidence]
        return hi - lo

    for cell in table:
        widths = [width(*cell, confidence) for confidence in TABLE_CONFIDENCES]
        assert widths == sorted(widths)
    assert width(100, 20, 0.99999) < width(20, 5, 0.99999)


def test_too_few_samples_are_refused():
    with pytest.raises(ValueError, match="too few"):
        estimate(np.array([1.0, 2.0]), 0.9)
