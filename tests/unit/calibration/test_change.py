from dataclasses import replace

import pytest

from recbulc.calibration.change import (
    Sightings,
    compare_models,
    compare_sightings,
    joined,
    looks_within,
    sightings,
    smallest_detectable_ticks,
)
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
    """Three granules may be a move on the host; four are not, unless moves were seen to go as far."""
    old = simulate([0, 0], guest=True, granule=26, seed=1)
    moved = compare_models(old, simulate([0, 70], guest=True, granule=26, seed=2), 0.99999)
    assert not moved.changed
    assert not moved.pairs[0].settled
    low, high = (simulate([0, d], guest=True, granule=26, seed=3) for d in (-52, 52))
    assert compare_models(low, high, 0.99999).changed
    far = (-57.0, 3.0, 30.0, -20.0, 57.0) * 6
    seen = replace(low, pairs=(replace(low.pairs[0], seen=far),))
    assert not compare_models(seen, high, 0.99999).changed
    later = replace(high, pairs=(replace(high.pairs[0], seen=far),))
    assert not compare_models(low, later, 0.99999).changed
    assert smallest_detectable_ticks(seen, 0.99999) > 114
    assert compare_models(simulate([0, 0], granule=26), simulate([0, 40], granule=26), 0.99999).changed  # bare metal


def test_the_smallest_detectable_shift_includes_what_moves_span(simulate):
    """And while few moves were seen, what they may span on either side of the one value that is known."""
    still = simulate([0, 0], guest=True, granule=26, seed=1)
    d = still.pairs[0].d_ticks
    watched = replace(still, pairs=(replace(still.pairs[0], seen=tuple(d + 7 * n for n in range(-4, 5)) * 3),))
    assert 78 < smallest_detectable_ticks(watched, 0.99999) < 100
    assert smallest_detectable_ticks(still, 0.99999) > 2 * 78


def test_a_doubtful_shift_is_looked_at_again(simulate):
    old = simulate([0, 0], guest=True, granule=26, seed=1)
    new = simulate([0, 90], guest=True, granule=26, seed=2)
    asked = []

    def look(found):
        def watched(cores, seconds):
            asked.append((cores, seconds))
            return found

        return watched

    assert compare_models(old, new, 0.99999).changed
    assert not compare_models(old, new, 0.99999, look([[30.0, 30.5], [1.0, 1.5]])).changed  # the old value recurs
    assert asked == [((0, 1), 1.0)]
    asked.clear()
    assert compare_models(old, new, 0.99999, look([[90.0, 90.5]]), looks=4).changed  # nothing moves
    assert len(asked) == 4
    asked.clear()
    assert compare_models(old, simulate([0, 1_000], guest=True, granule=26, seed=4), 0.99999, look([])).changed
    assert not compare_models(old, simulate([0, 5], guest=True, granule=26, seed=5), 0.99999, look([])).changed
    assert not asked  # no doubt, no second look


def test_sets_that_stay_apart_settle_it():
    """A dozen values then and a few now, none of them among the others, is no chance."""
    then = Sightings(tuple((float(d), 4) for d in range(-28, 28, 4)), 1.0, 20.0)

    def now(*values):
        return Sightings(tuple((float(d), 4) for d in values), 1.0, 20.0)

    assert not compare_sightings(then, now(75), (0, 1), 26, 0.99999).settled
    apart = compare_sightings(then, now(75, 90, 103, 110, 115, 120), (0, 1), 26, 0.99999)
    assert apart.settled
    assert apart.changed
    again = compare_sightings(then, now(20, -5), (0, 1), 26, 0.99999)
    assert again.settled
    assert not again.changed


def test_few_moves_do_not_show_how_far_moves_go():
    few = Sightings(((0.0, 4), (60.0, 4)), 1.0, 20.0)
    many = Sightings(((0.0, 4), *((float(d), 4) for d in range(2, 60, 2)), (60.0, 4)), 1.0, 20.0)
    assert compare_sightings(few, few, (0, 1), 0, 0.999).wander_ticks == pytest.approx(180)
    assert compare_sightings(many, many, (0, 1), 0, 0.999).wander_ticks == pytest.approx(64, abs=1)


def test_single_means_count_only_where_there_is_no_other(simulate):
    pair = simulate([0, 50]).pairs[0]
    assert sightings(replace(pair, stretches=((1.0, 3.0), (40.0,)))).values == ((2.0, 2),)
    alone = sightings(replace(pair, stretches=((5.0,),)), reverse=True)
    assert (alone.values, alone.variance, alone.freedom) == (((-5.0, 1),), 1.0, 1.0)


def test_a_stretch_goes_on_from_look_to_look():
    assert joined([[1.0, 2.0]], [[1.5], [30.0]]) == ((1.0, 2.0, 1.5), (30.0,))
    assert joined([[1.0]], []) == ((1.0,),)


def test_looks_fit_into_the_time_that_is_left():
    assert [looks_within(spent) for spent in (0.5, 2.0, 4.5, 60.0)] == [6, 6, 3, 2]


def test_a_suspend_is_noticed(simulate):
    old = simulate([0, 0])
    assert not compare_models(old, old, 0.99).suspended
    assert compare_models(old, replace(old, suspended_ns=old.suspended_ns + 60 * 10**9), 0.99).suspended


def test_models_without_a_common_pair_cannot_be_compared(simulate):
    two = simulate([0, 0])
    other = replace(two, pairs=(replace(two.pairs[0], cores=(4, 5)),))
    with pytest.raises(InputError, match="no pair of cores in common"):
        compare_models(two, other, 0.99)
