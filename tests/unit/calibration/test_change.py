from dataclasses import replace

import pytest

from recbulc.calibration.change import compare_models, mean_of_stretches, smallest_detectable_ticks
from recbulc.errors import InputError


def test_a_changed_clock_is_seen_and_an_unchanged_one_is_not(simulate):
    old = simulate([0, 50], seed=1)
    for seed in range(2, 22):
        same = compare_models(old, simulate([0, 50], seed=seed), 0.99999)
        assert not same.changed
        shifted = compare_models(old, simulate([0, 60], seed=seed), 0.99999)
        assert shifted.changed
        assert shifted.pairs[0].shift_ticks == pytest.approx(10, abs=2)


def test_a_shift_of_the_smallest_detectable_size_is_seen(simulate):
    old = simulate([0, 50], seed=1)
    smallest = smallest_detectable_ticks(old, 0.999)
    assert 0 < smallest < 10
    seen = sum(compare_models(old, simulate([0, 50 + smallest], seed=s), 0.999).changed for s in range(2, 32))
    assert seen >= 28


def test_the_direction_of_a_pair_does_not_matter(simulate):
    old = simulate([0, 50], seed=1)
    pair = old.pairs[0]
    turned = replace(
        pair,
        cores=(1, 0),
        stretches=tuple(tuple(-d for d in stretch) for stretch in pair.stretches),
    )
    new = simulate([0, 50], seed=2)
    assert not compare_models(replace(old, pairs=(turned,)), new, 0.99999).changed


def test_a_guests_moving_cores_are_no_change(simulate):
    """Two granules may be a move on the host; four are not."""
    old = simulate([0, 0], guest=True, granule=26, seed=1)
    moved = compare_models(old, simulate([0, 40], guest=True, granule=26, seed=2), 0.99999)
    assert not moved.changed
    assert moved.pairs[0].doubtful
    changed = compare_models(old, simulate([0, 104], guest=True, granule=26, seed=3), 0.99999)
    assert changed.changed
    assert compare_models(simulate([0, 0], granule=26), simulate([0, 40], granule=26), 0.99999).changed  # bare metal


def test_a_doubtful_shift_is_looked_at_again(simulate):
    old = simulate([0, 0], guest=True, granule=26, seed=1)
    new = simulate([0, 70], guest=True, granule=26, seed=2)
    elsewhere = simulate([0, 0], guest=True, granule=26, seed=3).pairs[0]
    asked = []

    def look_again(cores):
        asked.append(cores)
        return replace(elsewhere, stretches=((0.0, 0.5), (10.0, 10.5), (-10.0, -9.5)))

    assert compare_models(old, new, 0.99999).changed
    assert not compare_models(old, new, 0.99999, look_again).changed
    assert asked == [(0, 1)]
    far = simulate([0, 1_000], guest=True, granule=26, seed=4)
    assert compare_models(old, far, 0.99999, look_again).changed
    assert asked == [(0, 1)]  # no doubt, no second look


def test_stretches_count_alike_and_short_ones_are_less_certain():
    assert mean_of_stretches([[1.0, 3.0] * 50, [11.0, 13.0]])[0] == 7.0
    long, short = mean_of_stretches([[1.0, 3.0] * 50]), mean_of_stretches([[1.0, 3.0]])
    assert long[1] < short[1]
    assert long[2] > short[2]
    assert mean_of_stretches([[5.0]]) == (5.0, 1.0, 1.0)


def test_a_suspend_is_noticed(simulate):
    old = simulate([0, 0])
    assert not compare_models(old, old, 0.99).suspended
    assert compare_models(old, replace(old, suspended_ns=old.suspended_ns + 60 * 10**9), 0.99).suspended


def test_models_without_a_common_pair_cannot_be_compared(simulate):
    two = simulate([0, 0])
    other = replace(two, pairs=(replace(two.pairs[0], cores=(4, 5)),))
    with pytest.raises(InputError, match="no pair of cores in common"):
        compare_models(two, other, 0.99)
