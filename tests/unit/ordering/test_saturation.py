"""What follows from values, against the true order of simulated runs and against looking at every pair."""

from collections import Counter
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.ordering.truth import claimed_wrongly
from tests.unit.solver.programs import STYLES, simulated

from recbulc.ordering.conflicts import count_conflicts
from recbulc.ordering.order import partial_order
from recbulc.recorders.events import Kind
from recbulc.schedule import Part
from recbulc.solver import saturate as saturation
from recbulc.solver.check import check_order
from recbulc.solver.conflict_order import reduce_order, up_to_failure
from recbulc.solver.guards import guards_of
from recbulc.solver.problem import build_problem
from recbulc.solver.saturate import saturate
from recbulc.solver.solve import find_order, steps_of

ANY_RUN = (st.integers(0, 10**6), st.sampled_from(STYLES), st.integers(2, 4))


def problem_of(recording, stamps):
    return build_problem(partial_order(recording, stamps=stamps), recording, stamped=stamps)


@settings(max_examples=40, deadline=None)
@given(*ANY_RUN, st.booleans())
def test_what_follows_from_values_is_true(seed, style, threads, stamps):
    simulator, recording = simulated(seed, style, threads, slack=400)
    problem = problem_of(recording, stamps)
    before = [rows.copy() for rows in problem.bounds]
    saturate(problem)
    for old, new in zip(before, problem.bounds, strict=True):
        assert (new >= old).all()
    assert not claimed_wrongly(simulator, [lane.ops for lane in problem.lanes], problem.bounds)


@settings(max_examples=20, deadline=None)
@given(*ANY_RUN, st.integers(0, 3))
def test_when_time_is_up_the_rows_are_closed_and_true(seed, style, threads, rounds):
    simulator, recording = simulated(seed, style, threads, slack=400)
    problem = problem_of(recording, stamps=False)
    left = iter(range(rounds))
    saturate(problem, lambda: next(left, None) is None)
    for rows in problem.bounds:
        assert (np.diff(rows, axis=0) >= 0).all()
    assert not claimed_wrongly(simulator, [lane.ops for lane in problem.lanes], problem.bounds)


@pytest.mark.parametrize("style", STYLES)
def test_saturation_that_ends_early_leaves_what_can_be_solved(style, monkeypatch):
    monkeypatch.setattr(saturation, "WORTH_A_ROUND", 1)
    for seed in range(5):
        _, recording = simulated(seed, style, 3)
        assert find_order(recording, timestamps=False).status == "sat"


def brute_guards(problem, t, i, u):
    """One beyond the last operation of u that conflicts on memory and is not known to come later."""
    lane, other = problem.lanes[t], problem.lanes[u]
    mine, changed = ({cell for cell, _ in slots[i]} for slots in (lane.reads, lane.writes))
    far = 0
    for j in range(len(other)):
        theirs, written = ({cell for cell, _ in slots[j]} for slots in (other.reads, other.writes))
        if (changed & (theirs | written) or mine & written) and problem.bounds[u][j, t] <= i:
            far = j + 1
    return far if far > problem.bounds[t][i, u] else 0


@settings(max_examples=20, deadline=None)
@given(*ANY_RUN)
def test_an_operation_waits_for_every_open_conflict(seed, style, threads):
    _, recording = simulated(seed, style, threads, slack=400)
    problem = problem_of(recording, stamps=True)
    saturate(problem)
    guards = guards_of(problem)
    for t, u in permutations(range(len(problem.lanes)), 2):
        for i in range(len(problem.lanes[t])):
            assert dict(guards[t][i]).get(u, 0) >= brute_guards(problem, t, i, u)


@settings(max_examples=20, deadline=None)
@given(*ANY_RUN)
def test_open_pairs_are_named_by_their_sites(seed, style, threads):
    _, recording = simulated(seed, style, threads, slack=400)
    known = partial_order(recording)
    sites = [ops.events["site"].astype(np.int64) for ops in known.threads]
    found = count_conflicts(known.cells, known.bounds, sites)
    expected = Counter()
    for t, u in combinations(range(len(known.threads)), 2):
        for a, b in ((a, b) for a in range(len(sites[t])) for b in range(len(sites[u]))):
            if meet(known.cells, t, a, u, b) and not known.before((t, a), (u, b)) and not known.before((u, b), (t, a)):
                expected[tuple(sorted((int(sites[t][a]), int(sites[u][b]))))] += 1
    assert found.open_ops == expected
    assert found.unordered == expected.total()


def meet(cells, t, a, u, b):
    """Do two operations conflict on memory?"""
    stretches = []
    for thread, op in ((t, a), (u, b)):
        touches = cells.touches[thread]
        place = int(np.searchsorted(touches.op, op))
        if place == len(touches.op) or touches.op[place] != op:
            return False
        stretches.append((int(touches.first[place]), int(touches.end[place]), bool(touches.writes[place])))
    (first, end, writes), (other, stop, changes) = stretches
    return (writes or changes) and max(first, other) < min(end, stop)


@settings(max_examples=40, deadline=None)
@given(*ANY_RUN, st.randoms(use_true_random=False))
def test_any_order_that_keeps_the_waits_explains_the_recording(seed, style, threads, rng):
    _, recording = simulated(seed, style, threads)
    found = find_order(recording)
    if found.status != "sat":
        return  # test_solve judges that
    problem = found.problem
    kept = up_to_failure(problem, list(found.order), signalled=style == "crash")
    reduced = reduce_order(problem, kept)
    assert sorted(reduced.order) == sorted(w for w in kept if problem.lanes[w[0]].ops.kind[w[1]] != Kind.THREAD_START)
    for order in (reduced.order, shuffled(problem, reduced, rng)):
        whole = [(t, i) for t, i in order if problem.lanes[t].ops.part[i] != Part.BLOCKED]
        relaxed = {(t, int(problem.lanes[t].ops.index[i])) for t, i in problem.relaxed}
        external = {(t, int(problem.lanes[t].ops.index[i])) for t, i in problem.external}
        assert not check_order(recording, steps_of(problem, tuple(whole)), external, relaxed)


def shuffled(problem, reduced, rng):
    """Another order under the same waits: any thread that may go on does."""
    lists = [[] for _ in problem.lanes]
    creates = {}
    for t, i in reduced.order:
        lists[t].append((t, i))
        if problem.lanes[t].ops.kind[i] == Kind.CREATE:
            creates[int(problem.lanes[t].ops.events["value"][i])] = (t, len(lists[t]))
    done, order = [0] * len(lists), []
    while len(order) < len(reduced.order):
        able = [
            t
            for t, mine in enumerate(lists)
            if done[t] < len(mine)
            and all(done[u] >= count for u, count in reduced.waits[mine[done[t]]])
            and (t not in creates or done[creates[t][0]] >= creates[t][1])
        ]
        t = rng.choice(able)
        order.append(lists[t][done[t]])
        done[t] += 1
    return order
