from recbulc.calibration.interval import UNBOUNDED, Interval, intersection


def test_reversing_swaps_and_negates_the_ends():
    assert Interval(-3, 10).reversed() == Interval(-10, 3)
    assert Interval(-3, 10).reversed().reversed() == Interval(-3, 10)


def test_a_contradiction_stays_one():
    nothing = Interval(0, 10).intersection(Interval(20, 30))
    assert nothing == Interval(20, 10)
    assert nothing.contradictory
    assert nothing.width == -10
    assert 15 not in nothing


def test_intersection_of_many():
    several = [Interval(-5, 5), Interval(0, 9), Interval(-1, 3)]
    assert intersection(several) == Interval(0, 3)
    assert intersection([]) == UNBOUNDED
    assert not UNBOUNDED.bounded


def test_widening_rounds_outwards():
    assert Interval(-3, 3).widened(0.1) == Interval(-4, 4)
    assert Interval(-3, 3).widened(0) == Interval(-3, 3)
