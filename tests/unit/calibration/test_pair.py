"""What becomes of episodes between which the skew has stepped."""

from dataclasses import replace

import numpy as np
import pytest
from tests.support import QUICK

from recbulc.calibration.calibrate import untrusted_testers
from recbulc.calibration.episode import Effort, measure_pair
from recbulc.calibration.interval import Interval
from recbulc.calibration.pair import UNSOUND_TESTERS, split_at_steps, summarise
from recbulc.errors import InputError, RecbulcError
from recbulc.tsc_probe.counter import Granule
from recbulc.tsc_probe.machine import read_machine
from recbulc.tsc_probe.simulated import SimulatedClock, SimulatedProber

EXACT, COARSE = Granule(1, 0), Granule(26, 0)


def episodes(skews, seed=0):
    """Episodes of two cores whose skew is another one in each of them."""
    found = []
    for number, skew in enumerate(skews):
        prober = SimulatedProber(
            {0: SimulatedClock(), 1: SimulatedClock(float(skew))}, now=1e6, seed=seed * 1_000 + number
        )
        found += measure_pair(prober, (0, 1), (), QUICK, EXACT, 64)[:1]
    return found


def test_a_skew_that_stands_still_is_one_stretch():
    for seed in range(20):
        assert len(summarise((0, 1), episodes([100] * 8, seed), 0, 0.99, EXACT, 0.0).stretches) == 1


def test_steps_cut_the_calibration_into_stretches():
    pair = summarise((0, 1), episodes([100] * 5 + [126] * 3 + [100] * 2), 0, 0.99, COARSE, 0.0)
    assert [len(stretch) for stretch in pair.stretches] == [10, 6, 4]  # halves of episodes
    assert pair.wander_ticks == pytest.approx(26, abs=2)


def test_steps_are_seen_however_many_there_are():
    assert len(split_at_steps([60.0, -60.0] * 8, noise=2.0)) == 16


def test_sound_holds_on_both_sides_of_a_step():
    pair = summarise((0, 1), episodes([100] * 6 + [160] * 2), 0, 0.99, COARSE, 0.0)
    assert 100 in pair.sound
    assert 160 in pair.sound
    assert 160 in pair.confident  # where we are
    assert 100 not in pair.confident


def test_a_step_no_move_of_a_guest_explains_is_a_changed_clock():
    with pytest.raises(RecbulcError, match="changed while they were measured"):
        summarise((0, 1), episodes([100] * 4 + [5_100] * 4), 0, 0.99, COARSE, 0.0)
    with pytest.raises(RecbulcError, match="changed while they were measured"):
        summarise((0, 1), episodes([100] * 4 + [130] * 4), 0, 0.99, EXACT, 0.0)


def test_bounds_loosen_by_the_drift_since_their_episode():
    measured = [replace(episode, began_ns=0) for episode in episodes([100] * 4)]
    now = summarise((0, 1), measured, 0, 0.99, EXACT, 1e-3)
    later = summarise((0, 1), measured, 50_000, 0.99, EXACT, 1e-3)
    assert later.sound == now.sound.widened(50)


def test_bounds_that_contradict_each_other_are_an_error():
    good = episodes([100] * 4)
    bad = replace(good[0], bounds={name: Interval(900, 950) for name in good[0].bounds})
    with pytest.raises(RecbulcError, match="changed while they were measured"):
        summarise((0, 1), [*good, bad], 0, 0.99, EXACT, 0.0)


def test_testers_that_are_not_trusted_prove_nothing():
    measured = episodes([100] * 4)
    false = [replace(episode, bounds=episode.bounds | {"5c": Interval(900, 950)}) for episode in measured]
    pair = summarise((0, 1), false, 0, 0.99, EXACT, 0.0, UNSOUND_TESTERS | {"5c"})
    assert 100 in pair.sound


def test_where_lfence_may_not_order_who_needs_it_is_left_out():
    machine = read_machine()
    assert untrusted_testers(replace(machine, lfence_orders=True)) == {"5c-bare", "5d-bare"}
    assert untrusted_testers(replace(machine, lfence_orders=False)) == {"5a", "5c", "5d", "5c-bare", "5d-bare"}


def test_confident_falls_back_to_sound_where_the_paths_are_not_alike():
    """An asymmetry beyond what is proven: statistics are not believed against a proof."""
    asymmetric = [
        replace(episode, d_before=episode.d_before + 5_000, d_after=episode.d_after + 5_000)
        for episode in episodes([100] * 4)
    ]
    pair = summarise((0, 1), asymmetric, 0, 0.99, EXACT, 0.0)
    assert pair.confident == pair.sound
    assert 100 in pair.confident


def test_no_undisturbed_round_is_an_error():
    none = [replace(episode, d_after=np.empty(0)) for episode in episodes([100] * 4)]
    with pytest.raises(RecbulcError, match="no undisturbed round"):
        summarise((0, 1), none, 0, 0.99, EXACT, 0.0)


def test_too_few_rounds_are_refused():
    with pytest.raises(InputError, match="too few"):
        Effort(rounds=10)


def test_many_rounds_are_many_short_calls():
    effort = Effort(rounds=10**7)
    assert effort.rounds_per_episode <= 25_600
    assert effort.episodes * effort.rounds_per_episode >= 10**7
