import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbulc.tsc_probe.overflow import difference, unwrap

widths = st.integers(8, 64)


def wrapped(ticks, width):
    return np.array([tick % (1 << width) for tick in ticks], dtype=np.uint64)


@given(width=widths, start=st.integers(0, 2**64 - 1), data=st.data())
def test_unwrapping_recovers_every_gap_below_a_period(width, start, data):
    gaps = data.draw(st.lists(st.integers(0, min((1 << width) - 1, 1 << 55)), max_size=50))
    ticks = np.cumsum([0, *gaps])
    result = unwrap(wrapped([start + int(tick) for tick in ticks], width), width)
    assert result.ticks.tolist() == ticks.tolist()
    assert result.overflows == (start % (1 << width) + int(ticks[-1])) >> width
    assert result.ambiguous.size == 0


@given(width=widths, one=st.integers(0, 2**64 - 1), data=st.data())
def test_differences_are_exact_within_half_a_period(width, one, data):
    half = 1 << (width - 1)
    by = data.draw(st.integers(-half, half - 1))
    assert difference(wrapped([one + by], width), wrapped([one], width), width).tolist() == [by]


def test_threads_share_a_line_through_a_common_origin():
    origin = 2**32 - 100
    early = unwrap(wrapped([origin - 50, origin + 20], 32), 32, origin=origin)
    late = unwrap(wrapped([origin + 150, origin + 300], 32), 32, origin=origin)
    assert early.ticks.tolist() == [-50, 20]
    assert late.ticks.tolist() == [150, 300]


def test_a_gap_of_a_period_or_more_is_found_by_the_wall_clock():
    hz, period = 1e9, 1 << 32
    ticks = [0, 1_000, 1_000 + period + 500, 1_000 + period + 900]
    result = unwrap(wrapped(ticks, 32), 32, wall_ns=np.array(ticks), hz=hz)
    assert result.ambiguous.tolist() == [2]
    backwards = unwrap(wrapped([1000, 990], 32), 32, wall_ns=np.array([0, 10]), hz=hz)
    assert backwards.ambiguous.tolist() == [1]
    unknown = unwrap(wrapped(ticks, 32), 32)
    assert unknown.ambiguous.size == 0  # the counter alone cannot tell


def test_no_stamps_and_impossible_widths():
    assert unwrap(np.empty(0, dtype=np.uint64), 32).ticks.size == 0
    with pytest.raises(ValueError, match="0 bits"):
        unwrap(np.zeros(2, dtype=np.uint64), 0)
