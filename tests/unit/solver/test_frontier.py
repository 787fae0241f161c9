"""The frontier search: what it finds explains everything, is the same every time, and where it is stuck is said."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.solver.made import LOCK, X, Y, call, problem_of, read, truth_of, workers, write
from tests.unit.solver.programs import STYLES, simulated

from recbulc.recorders.events import Kind
from recbulc.solver.check import check_order, check_stamps
from recbulc.solver.frontier import Frontier, Stuck
from recbulc.solver.problem import ANY
from recbulc.solver.saturate import saturate
from recbulc.solver.solve import as_order, steps_of

RUNS = given(st.integers(0, 10**6), st.sampled_from(STYLES), st.integers(2, 4), st.booleans())
STUCK = (1, "increments", 4, 16)  # without stamps: it goes back too far and finds no other way


def never():
    return False


def saturated(seed, style, count=2, length=8, *, stamps=True):
    simulator, recording = simulated(seed, style, count, length)
    problem = problem_of(recording, stamps=stamps)
    saturate(problem)
    return simulator, recording, problem


@settings(max_examples=20, deadline=None, derandomize=True)
@RUNS
def test_every_order_found_explains_every_value(seed, style, count, stamps):
    _, recording, problem = saturated(seed, style, count, stamps=stamps)
    try:
        trail = Frontier(problem, never).run()
    except Stuck:
        return  # z3 has these: test_z3
    order = as_order(trail)
    assert all(sum(t == u for t, _ in order) >= lane.required for u, lane in enumerate(problem.lanes))
    assert check_order(recording, steps_of(problem, order)) == []
    if stamps:
        assert check_stamps(recording, steps_of(problem, order)) == []


def test_few_are_left_to_others():
    stuck = 0
    for seed in range(8):
        for style in STYLES:
            try:
                Frontier(saturated(seed, style, 3, stamps=bool(seed % 2))[2], never).run()
            except Stuck:
                stuck += 1
    assert stuck <= 2


@pytest.mark.parametrize("style", STYLES)
def test_the_same_recording_gives_the_same_order(style):
    first, second = (Frontier(saturated(5, style, 3)[2], never).run() for _ in range(2))
    assert first == second


@settings(max_examples=15, deadline=None, derandomize=True)
@RUNS
def test_the_truth_can_be_followed_and_taken_back(seed, style, count, stamps):
    simulator, _, problem = saturated(seed, style, count, stamps=stamps)
    frontier = Frontier(problem, never)
    way = [t for t, _ in truth_of(simulator, problem)]
    assert frontier.follow(way)
    frontier.restart_at(len(way) // 2)
    assert frontier.follow(way[len(way) // 2 :])
    frontier.restart_at(0)
    assert (frontier.name, frontier.trail, frontier.machine.state) == (0, [], {})
    assert set(frontier.memory) <= {ANY}
    assert not any(frontier.position)


def test_a_wrong_way_is_not_followed_at_all():
    problem = problem_of(workers([write(X, 1), write(X, 2)], [read(X, 1)]))
    frontier = Frontier(problem, never)
    assert frontier.follow([0, 0, 1, 2, 1])
    for wrong in ([1, 2], [2, 2, 2, 2], [0]):  # 2 was written, beyond the last, joined before its end
        assert not frontier.follow(wrong)
        assert frontier.trail == [0, 0, 1, 2, 1]
    assert frontier.follow([2, 1])


def test_a_lock_that_is_held_is_not_taken():
    section = [call(Kind.MUTEX_LOCK, LOCK), write(X, 1), call(Kind.MUTEX_UNLOCK, LOCK)]
    frontier = Frontier(problem_of(workers(section, section)), never)
    assert frontier.follow([0, 0, 1, 1, 2])
    assert not frontier.follow([2])
    assert frontier.follow([1, 1, 2])


def test_where_it_is_stuck_is_said():
    problem = saturated(*STUCK, stamps=False)[2]
    with pytest.raises(Stuck) as stuck:
        Frontier(problem, never).run()
    position, blocked = stuck.value.position, stuck.value.blocked
    assert not stuck.value.out_of_time
    assert blocked == tuple((t, i) for t, i in enumerate(position) if i < problem.lanes[t].required)
    assert blocked


def test_a_stuck_window_goes_on_where_it_is_told_to():
    simulator, recording, problem = saturated(*STUCK, stamps=False)
    frontier = Frontier(problem, never)
    asked = []

    def truth(stuck):
        asked.append(stuck)
        frontier.restart_at(0)
        return [t for t, _ in truth_of(simulator, problem)]

    order = as_order(frontier.run(truth))
    assert len(asked) == frontier.statistics.windows == 1
    assert check_order(recording, steps_of(problem, order)) == []


def test_a_way_that_leads_nowhere_is_refused():
    problem = saturated(*STUCK, stamps=False)[2]
    with pytest.raises(Stuck):
        Frontier(problem, never).run(lambda _: [0] * 1000)


def test_time_is_up():
    """Eight threads that each read what only the other order gives: far too many ways."""
    rows = [[write(X, t), read(Y, 1), write(Y, 0)] for t in range(1, 9)]
    problem = problem_of(workers(*rows, before=(write(Y, 1),), after=(read(Y, 7),)))
    with pytest.raises(Stuck) as stuck:
        Frontier(problem, lambda: True).run(dead_ends=10**9)
    assert stuck.value.position
