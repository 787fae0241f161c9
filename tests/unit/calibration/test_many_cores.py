"""Three and more cores, as the paper has them: simulated ones, since the test machines have two."""

import random
from dataclasses import replace

import pytest
from tests.support import QUICK

from recbulc.calibration.episode import measure_pair
from recbulc.calibration.figures import calibration_figure, save_figure
from recbulc.calibration.interval import Interval
from recbulc.tsc_probe.counter import Granule
from recbulc.tsc_probe.simulated import SimulatedClock, SimulatedProber

OFFSETS = [0, 40, -25, 1_000, 1_030, 990]
PACKAGES = {0: 0, 1: 0, 2: 0, 3: 1, 4: 1, 5: 1}


@pytest.fixture
def model(simulate):
    return simulate(OFFSETS, packages=PACKAGES, granule=2)


def test_every_pair_contains_its_skew(model):
    assert len(model.pairs) == 15
    for pair in model.pairs:
        x, y = pair.cores
        skew = OFFSETS[y] - OFFSETS[x]
        assert skew in pair.sound
        assert skew in pair.confident
        assert pair.confident.width < pair.sound.width
        assert skew in model.interval(x, y)
        assert -skew in model.interval(y, x)


def test_the_trigger_is_drawn_anew_for_every_episode(monkeypatch):
    prober = SimulatedProber({core: SimulatedClock() for core in range(5)}, now=1e6)
    used = []
    flag = prober.flag
    monkeypatch.setattr(
        prober, "flag", lambda pair, trigger, rounds: used.append(trigger) or flag(pair, trigger, rounds)
    )
    random.seed(7)
    measure_pair(prober, (0, 1), ((2, 3, 4),), QUICK, Granule(1, 0), 64)
    assert set(used[2:]) == {2, 3, 4}  # the first two are the warm-up


def test_loops_close(model):
    assert model.open_loops() == []


def test_loops_close_while_clocks_drift(simulate):
    """Pairs are measured one after the other; what drifts within the limit meanwhile contradicts nothing."""
    for seed in range(5):
        simulate([0] * 6, drifts=[-0.05, 0.05, 0.02, -0.03, 0.05, -0.05], seed=seed)


def test_a_loop_that_does_not_close_is_found(model):
    bent = tuple(replace(pair, sound=Interval(5_000, 5_100)) if pair.cores == (0, 2) else pair for pair in model.pairs)
    loops = replace(model, pairs=bent).open_loops()
    assert (0, 1, 2) in loops
    assert all({0, 2} <= set(loop) for loop in loops)


def test_the_core_map_is_drawn(model, tmp_path):
    prober = SimulatedProber({core: SimulatedClock(float(OFFSETS[core])) for core in range(6)}, now=1e6)
    figure = calibration_figure(model, prober.flag((0, 1), 2, 10_000))
    assert [axes.get_title() for axes in figure.axes[:3]] == [
        "TS1 − TS0 when both saw the flag",
        "TS1 − TS0: bounds by tester",
        "skew of all pairs (numbers: width of sound)",
    ]
    save_figure(figure, tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 10_000
