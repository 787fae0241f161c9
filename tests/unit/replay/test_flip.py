"""A schedule with two operations in the other order, and the search for the last pair that matters."""

import pytest
from tests.unit.replay.test_compile import made

from recbulc.recorders.events import Kind
from recbulc.replay import flip
from recbulc.replay.flip import ONE_BY_ONE, find_decisive, flipped
from recbulc.schedule import Op, Part
from recbulc.solver.racing import Candidate


def candidate(held, until):
    return Candidate((), held, until, torn=False)


def op(kind, *waits, **more):
    return Op(kind, -1, 0, waits=waits, **more)


def read(*waits):
    return op(Kind.READ, *waits)


def write(*waits):
    return op(Kind.WRITE, *waits)


def lost_update():
    """0.2 reads before 0.1 writes, and writes after it."""
    return made(
        {
            "0": [
                op(Kind.CREATE, value=1), op(Kind.CREATE, value=2), op(Kind.JOIN, (1, 2), value=1),
                op(Kind.JOIN, (2, 2), value=2),
            ],
            "0.1": [read(), write((2, 1))],
            "0.2": [read(), write((1, 2))],
        },
        [],
    )  # fmt: skip


def waits(schedule):
    return [[tuple(one.waits) for one in thread.ops] for thread in schedule.threads]


def test_the_held_operation_waits_for_the_other_and_ends_its_list():
    other = flipped(lost_update(), candidate((2, 0), (1, 1)))  # 0.2's read after 0.1's write
    assert waits(other) == [[(), (), ((1, 2),)], [(), ((2, 0),)], [((1, 2),)]]
    assert not other.verdict.failed
    assert other.racing == ()


def test_what_came_of_the_held_one_is_left_out():
    other = flipped(lost_update(), candidate((1, 1), (2, 1)))  # 0.1's write after 0.2's
    assert waits(other) == [[(), ()], [(), ((2, 1), (2, 2))], [(), ((1, 1),)]]


def test_a_thread_cannot_come_before_who_created_it():
    assert flipped(lost_update(), candidate((0, 1), (2, 0))) is None
    assert flipped(lost_update(), candidate((0, 2), (2, 0))) is not None


def test_who_was_woken_cannot_come_before_who_woke_it():
    woken = op(Kind.COND_WAIT, (1, 1), part=Part.END)
    schedule = made({"0": [op(Kind.CREATE, value=1), woken, read()], "0.1": [op(Kind.COND_SIGNAL), write()]}, [])
    assert flipped(schedule, candidate((1, 0), (0, 2))) is None
    assert flipped(schedule, candidate((1, 1), (0, 2))) is not None


@pytest.mark.parametrize("last", [0, 1, ONE_BY_ONE, ONE_BY_ONE + 1, 100, 777, 999])
def test_the_last_that_matters_is_found_without_trying_all(monkeypatch, last):
    tried = []
    candidates = [candidate((0, n), (1, n)) for n in range(1000)]  # the last first

    def passes(_schedule, one):
        tried.append(one)
        return candidates.index(one) >= last

    monkeypatch.setattr(flip, "passes_flipped", passes)
    assert find_decisive(lost_update(), candidates, 60) is candidates[last]
    assert len(tried) <= ONE_BY_ONE + 30
    assert find_decisive(lost_update(), candidates, 0) is None


def test_none_may_matter(monkeypatch):
    monkeypatch.setattr(flip, "passes_flipped", lambda *_: False)
    assert find_decisive(lost_update(), [candidate((0, n), (1, n)) for n in range(100)], 60) is None
    assert find_decisive(lost_update(), [], 60) is None


def test_what_cannot_be_flipped_is_no_evidence(monkeypatch):
    cannot = {40, 60, 61, 62, 80}
    monkeypatch.setattr(flip, "passes_flipped", lambda _, one: None if one.held[1] in cannot else one.held[1] >= 63)
    candidates = [candidate((0, n), (1, n)) for n in range(100)]
    assert find_decisive(lost_update(), candidates, 60) is candidates[63]


def test_of_pairs_within_each_other_the_innermost_counts(monkeypatch):
    """A flip of the outer pair turns the inner one round, too."""
    outer, inner, beside = candidate((0, 2), (1, 9)), candidate((0, 5), (1, 6)), candidate((0, 1), (1, 3))
    monkeypatch.setattr(flip, "passes_flipped", lambda *_: True)
    assert find_decisive(lost_update(), [outer, inner, beside], 60) is inner
    monkeypatch.setattr(flip, "passes_flipped", lambda _, one: one is not inner)
    assert find_decisive(lost_update(), [outer, inner, beside], 60) is outer
