from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.ordering.truth import claimed_wrongly
from tests.unit.solver.programs import STYLES, simulated

from recbulc.ordering.cells import cut
from recbulc.ordering.events import Recording
from recbulc.ordering.order import order, partial_order
from recbulc.recorders.events import EVENT, Kind


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(STYLES), st.integers(2, 4))
def test_every_order_claimed_is_true(seed, style, threads):
    simulator, recording = simulated(seed, style, threads)
    known = partial_order(recording)
    assert not claimed_wrongly(simulator, known.threads, known.bounds)


def brute(known):
    """Conflicting pairs one by one."""
    pairs = ordered = 0
    accesses = []
    for t, ops in enumerate(known.threads):
        for i, event in enumerate(ops.events):
            if event["kind"] in (Kind.READ, Kind.WRITE, Kind.RMW, Kind.FREE):
                size = event["value"] if event["kind"] == Kind.FREE else event["size"]
                silent = event["kind"] == Kind.RMW and event["value"] == event["old"] and event["after"]
                reads = event["kind"] == Kind.READ or silent
                accesses.append((t, i, int(event["object"]), int(event["object"]) + int(size), reads))
    touched = set()
    for a, b in combinations(accesses, 2):
        if a[0] != b[0] and not (a[4] and b[4]):
            touched.update(range(max(a[2], b[2]), min(a[3], b[3])))
    plain = [x for x in accesses if known.threads[x[0]].kind[x[1]] != Kind.FREE]
    visited = {byte for x in plain for byte in range(x[2], x[3])}
    for a, b in combinations(accesses, 2):
        if a[0] != b[0] and not (a[4] and b[4]) and any(x in visited for x in range(max(a[2], b[2]), min(a[3], b[3]))):
            pairs += 1
            ordered += known.before(a[:2], b[:2]) or known.before(b[:2], a[:2])
    return pairs, ordered


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(STYLES), st.integers(2, 3))
def test_pairs_are_counted_as_by_hand(seed, style, threads):
    _, recording = simulated(seed, style, threads)
    report = order(recording)
    assert (report.conflicting_pairs, report.ordered) == brute(partial_order(recording))
    assert sum(pair.count for pair in order(recording, 10**6).open_pairs) == report.unordered


def log(*rows):
    events = np.zeros(len(rows), EVENT)
    for i, row in enumerate(rows):
        for name, value in row.items():
            events[i][name] = value
    return events


def write(before, after, core=0, **more):
    return {
        "before": before,
        "after": after,
        "kind": Kind.WRITE,
        "object": 64,
        "size": 8,
        "core": core,
        "core_after": core,
    } | more


@pytest.mark.parametrize(("second", "ordered"), [(130, 0), (131, 1)])
def test_equal_is_unordered(second, ordered):
    recording = Recording((log(write(100, 110)), log(write(second, second + 5, core=1))), lambda x, y: (-20, 20))
    assert order(recording).ordered == ordered


@pytest.mark.parametrize(("second", "ordered"), [(110, 0), (111, 1)])
def test_one_core_orders_its_threads_by_one_clock(second, ordered):
    recording = Recording((log(write(100, 110)), log(write(second, second + 5))), lambda x, y: (-20, 20))
    assert order(recording).ordered == ordered


def test_cells_are_cut_where_accesses_of_other_sizes_end():
    recording = Recording(
        (log(write(100, 110), write(120, 130, object=70, size=1)), log(write(500, 510, object=68, size=4))),
        lambda x, y: (0, 0),
    )
    cells = cut(partial_order(recording).threads)
    assert cells.address.tolist() == [68, 70, 71]
    assert cells.width.tolist() == [2, 1, 1]
