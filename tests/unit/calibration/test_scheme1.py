import numpy as np

from recbulc.calibration.interval import FAR, Interval
from recbulc.calibration.scheme1 import handoff_bounds, race_bounds, shortest_round_trip
from recbulc.tsc_probe.rounds import HandoffRounds, RaceRounds


def u64(*values):
    return np.array([value % 2**64 for value in values], dtype=np.uint64)


def race(before0, after0, before1, after1, first, migrated=None):
    flags = np.array(migrated or [False] * len(first))
    return RaceRounds(u64(*before0), u64(*after0), u64(*before1), u64(*after1), np.array(first, dtype=np.uint8), flags)


def test_eq_3_takes_each_bound_from_the_rounds_that_prove_it():
    rounds = race(
        before0=[1000, 1000, 1000, 1000],
        after0=[1100, 1100, 1090, 1100],
        before1=[1500, 1500, 1470, 1500],
        after1=[1600, 1580, 1600, 1600],
        first=[0, 0, 1, 1],
    )
    # 0 first: d < 1600 − 1000 and d < 1580 − 1000; 1 first: d > 1470 − 1090 and d > 1500 − 1100
    assert race_bounds(rounds) == Interval(400, 580)


def test_a_side_that_always_wins_leaves_the_other_end_open():
    bounds = race_bounds(race([10], [20], [15], [30], [0]))
    assert bounds == Interval(-FAR, 20)
    assert not bounds.bounded


def test_rounds_of_migrated_threads_prove_nothing():
    rounds = race([1000, 0], [1100, 0], [1500, 0], [1600, 0], [0, 0], migrated=[False, True])
    assert race_bounds(rounds).hi == 600


def test_bounds_are_right_across_an_overflow():
    near_end = 2**32 - 50
    rounds = race([near_end], [near_end + 40], [(near_end + 20) % 2**32], [(near_end + 90) % 2**32], [0])
    assert race_bounds(rounds, width_bits=32).hi == 90


def test_handoff_bounds_and_round_trip():
    rounds = HandoffRounds(u64(1000, 2000), u64(1350, 2300), u64(1500, 2600), np.array([False, False]))
    assert handoff_bounds(rounds) == Interval(-150, 300)
    assert shortest_round_trip(rounds) == 500
