"""Saturation claims nothing that the truth contradicts, and goes as far as it can."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.solver.made import X, problem_of, read, rmw, threads, truth_of, workers, write
from tests.unit.solver.programs import STYLES, simulated

from recbulc.ordering.closure import Contradiction
from recbulc.solver.problem import ANY
from recbulc.solver.saturate import find_candidates, saturate
from recbulc.solver.visits import collect

RUNS = given(st.integers(0, 10**6), st.sampled_from(STYLES), st.integers(2, 4), st.booleans())


@settings(max_examples=20, deadline=None, derandomize=True)
@RUNS
def test_what_follows_from_values_is_true(seed, style, count, stamps):
    simulator, recording = simulated(seed, style, count)
    problem = problem_of(recording, stamps=stamps)
    saturate(problem)
    assert not problem.external  # every read had its write
    true = {where: n for n, where in enumerate(truth_of(simulator, problem))}
    for (t, i), place in true.items():
        for u, known in enumerate(problem.bounds[t][i].tolist()):
            if u != t and known:
                assert true[u, known - 1] < place, (u, known - 1, t, i)


@settings(max_examples=20, deadline=None, derandomize=True)
@RUNS
def test_a_fixpoint_is_reached(seed, style, count, stamps):
    problem = problem_of(simulated(seed, style, count)[1], stamps=stamps)
    saturate(problem)
    rows = [bounds.copy() for bounds in problem.bounds]
    assert saturate(problem).rounds == 1
    assert all((mine == theirs).all() for mine, theirs in zip(rows, problem.bounds, strict=True))


def brute_candidates(problem, t, i, cell, value):
    """How many writes a read may have seen, one by one; the initial contents are one."""

    def before(a, b):
        return problem.bounds[b[0]][b[1], a[0]] > a[1]

    writes = {
        (u, j): dict(puts)[cell]
        for u, lane in enumerate(problem.lanes)
        for j, puts in enumerate(lane.writes)
        if cell in dict(puts)
    }
    certain = [w for w in writes if before(w, (t, i))]
    seen = [
        w
        for w, put in writes.items()
        if put in (value, ANY) and w != (t, i) and not before((t, i), w) and not any(before(w, c) for c in certain)
    ]
    return len(seen) + (not certain)


@settings(max_examples=20, deadline=None, derandomize=True)
@RUNS
def test_candidates_are_counted_as_by_hand(seed, style, count, stamps):
    problem = problem_of(simulated(seed, style, count, 5)[1], stamps=stamps)
    saturate(problem)
    visits = collect(problem)
    for t in range(len(problem.lanes)):
        found = find_candidates(visits, problem.bounds, t).count.tolist()
        reads = visits.reads[t]
        for cell, i, candidates in zip(reads.cell.tolist(), reads.op.tolist(), found, strict=True):
            value = dict(problem.lanes[t].reads[i])[cell]
            assert candidates == brute_candidates(problem, t, i, cell, value), (t, i, cell)


def before(problem, a, b):
    return bool(problem.bounds[b[0]][b[1], a[0]] > a[1])


ZERO = (write(X, 0),)  # so that the initial contents are out of the question


def test_the_only_write_of_a_value_is_before_who_read_it():
    problem = problem_of(threads([write(X, 5)], [read(X, 5)]))
    assert saturate(problem).candidates == 2  # it, or the initial contents, which nobody knows
    problem = problem_of(workers([write(X, 5)], [read(X, 0), read(X, 5)], before=ZERO))
    saturate(problem)
    assert before(problem, (2, 1), (1, 1))
    assert before(problem, (1, 1), (2, 2))


def test_other_writes_come_before_the_one_that_was_seen_or_after_the_read():
    """x = 6 was there before 5 was read, and 7 came after that."""
    problem = problem_of(workers([write(X, 5)], [write(X, 6), read(X, 5), write(X, 7)], before=ZERO))
    saturate(problem)
    assert before(problem, (2, 1), (1, 1))
    assert before(problem, (1, 1), (2, 2))


def test_values_chain():
    """Counting up by read-modify-writes leaves nothing open."""
    problem = problem_of(threads([rmw(X, 0, 1), rmw(X, 2, 3)], [rmw(X, 1, 2), rmw(X, 3, 4)]))
    assert saturate(problem).open_reads == 0
    for a, b in (((0, 0), (1, 0)), ((1, 0), (0, 1)), ((0, 1), (1, 1))):
        assert before(problem, a, b)


def test_what_nobody_wrote_is_external_once():
    problem = problem_of(threads([write(X, 5), read(X, 9)], [read(X, 5), read(X, 9)]))
    saturate(problem)
    assert len(problem.external) == 1  # one of the two explains the other


@pytest.mark.parametrize("stamps", [True, False])
def test_two_threads_that_disagree_about_the_order_of_two_writes(stamps):
    problem = problem_of(
        workers([write(X, 1)], [write(X, 2)], [read(X, 1), read(X, 2)], [read(X, 2), read(X, 1)], before=ZERO),
        stamps=stamps,
    )
    with pytest.raises(Contradiction):
        saturate(problem)
