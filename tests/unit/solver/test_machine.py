"""Every sort of synchronisation object: what it permits, what it refuses, and that everything can be taken back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.solver.made import BAR, COND, LOCK, ONCE, RW, SEM, call, problem_of, threads, truth_of
from tests.unit.solver.programs import STYLES, simulated

from recbulc.recorders.events import Flag, Kind
from recbulc.solver.machine import Machine

BUSY, AGAIN, TIMEDOUT = 16, 11, 110
LOCKED, UNLOCKED = call(Kind.MUTEX_LOCK, LOCK), call(Kind.MUTEX_UNLOCK, LOCK)
TRIED = call(Kind.MUTEX_TRYLOCK, LOCK, BUSY)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from(STYLES), st.integers(2, 4))
def test_what_happened_is_permitted_and_can_be_taken_back(seed, style, count):
    simulator, recording = simulated(seed, style, count)
    problem = problem_of(recording)
    machine = Machine(problem)
    undone = []
    for t, i in truth_of(simulator, problem):
        step = machine.steps[t][i]
        if step is None:
            continue
        may, do, arguments = step
        assert may(t, *arguments), (t, i)
        state = dict(machine.state)
        changes = do(t, *arguments)
        done = dict(machine.state)
        machine.undo(changes)
        assert machine.state == state
        undone.append(do(t, *arguments))
        assert machine.state == done
    for changes in reversed(undone):
        machine.undo(changes)
    assert machine.state == {}


class Threads:
    """Threads that do one operation after the other when asked."""

    def __init__(self, *rows, deadlocked=False):
        self.machine = Machine(problem_of(threads(*rows, deadlocked=deadlocked)))
        self.next = [0] * len(rows)

    def may(self, t):
        step = self.machine.steps[t][self.next[t]]
        return step is None or step[0](t, *step[2])

    def do(self, *order):
        for t in order:
            assert self.may(t), (t, self.next)
            step = self.machine.steps[t][self.next[t]]
            if step:
                step[1](t, *step[2])
            self.next[t] += 1
        return self


SPIN = [call(Kind.SPIN_LOCK, LOCK), call(Kind.SPIN_UNLOCK, LOCK)]
SHARED = [call(Kind.RW_RDLOCK, RW), call(Kind.RW_UNLOCK, RW)]
ALONE = [call(Kind.RW_WRLOCK, RW), call(Kind.RW_UNLOCK, RW)]
POST, TAKE, EMPTY = call(Kind.SEM_POST, SEM), call(Kind.SEM_WAIT, SEM), call(Kind.SEM_TRYWAIT, SEM, AGAIN)
SIGNAL, BROADCAST = call(Kind.COND_SIGNAL, COND), call(Kind.COND_BROADCAST, COND)
SLEEP = [LOCKED, call(Kind.COND_WAIT, COND, old=LOCK)]
IMPATIENT = [LOCKED, call(Kind.COND_WAIT, COND, TIMEDOUT, old=LOCK)]
MEET = call(Kind.BARRIER_WAIT, BAR)
RUN_ONCE = [call(Kind.ONCE, ONCE, flags=Flag.RAN, after=10_550), call(Kind.RW_RDLOCK, RW)]


def semaphore(tokens):
    return call(Kind.SEM_INIT, SEM, tokens)


@pytest.mark.parametrize(
    ("rows", "order", "thread", "may"),
    [
        pytest.param(([LOCKED], [LOCKED]), [0], 1, False, id="a mutex is held once"),
        pytest.param(([LOCKED, UNLOCKED], [LOCKED]), [0, 0], 1, True, id="and can be taken when it was released"),
        pytest.param(([LOCKED, LOCKED],), [0], 0, True, id="a recursive one can be taken again"),
        pytest.param(([LOCKED, LOCKED, UNLOCKED], [LOCKED]), [0, 0, 0], 1, False, id="and is released as often"),
        pytest.param(([LOCKED, LOCKED, UNLOCKED, UNLOCKED], [LOCKED]), [0] * 4, 1, True, id="then it is free"),
        pytest.param(([LOCKED], [TRIED]), [], 1, False, id="busy is what somebody holds"),
        pytest.param(([LOCKED], [TRIED]), [0], 1, True, id="as here"),
        pytest.param(([SPIN[0]], SPIN), [0], 1, False, id="spin locks exclude"),
        pytest.param(([LOCKED, call(Kind.MUTEX_INIT, LOCK)], [LOCKED]), [0, 0], 1, True, id="set up anew is free"),
        pytest.param((SHARED, SHARED), [0], 1, True, id="readers share"),
        pytest.param((SHARED, ALONE), [0], 1, False, id="a writer waits for readers"),
        pytest.param((SHARED, SHARED, ALONE), [0, 1, 0], 2, False, id="for all of them"),
        pytest.param((SHARED, SHARED, ALONE), [0, 1, 0, 1], 2, True, id="and no longer"),
        pytest.param((ALONE, SHARED), [0], 1, False, id="a reader waits for a writer"),
        pytest.param((SHARED, [call(Kind.RW_TRYWRLOCK, RW, BUSY)]), [0], 1, True, id="readers keep writers busy"),
        pytest.param((SHARED, [call(Kind.RW_TRYRDLOCK, RW, BUSY)]), [0], 1, False, id="but not each other"),
        pytest.param(([semaphore(1)], [TAKE], [TAKE]), [0, 1], 2, False, id="a semaphore runs out"),
        pytest.param(([semaphore(0), POST], [TAKE]), [0, 0], 1, True, id="and is filled"),
        pytest.param(([semaphore(0)], [EMPTY]), [0], 1, True, id="empty"),
        pytest.param(([semaphore(1)], [EMPTY]), [0], 1, False, id="not empty"),
        pytest.param(([TAKE, TAKE], [EMPTY]), [0, 0], 1, True, id="nobody knows what was in it"),
        pytest.param((SLEEP, [LOCKED]), [0, 0], 1, True, id="who sleeps has released the mutex"),
        pytest.param((SLEEP, [SIGNAL]), [0, 0], 0, False, id="and needs a signal"),
        pytest.param((SLEEP, [SIGNAL]), [0, 0, 1], 0, True, id="as here"),
        pytest.param((SLEEP, [SIGNAL]), [1, 0, 0], 0, False, id="an earlier one is lost"),
        pytest.param((SLEEP, [LOCKED, SIGNAL]), [0, 0, 1, 1], 0, False, id="and the mutex"),
        pytest.param((SLEEP, SLEEP, [SIGNAL]), [0, 0, 1, 1, 2, 0], 1, False, id="one signal wakes one"),
        pytest.param((SLEEP, SLEEP, [SIGNAL]), [0, 0, 2, 1, 1], 1, False, id="not one that came when it was awake"),
        pytest.param((SLEEP, SLEEP, [BROADCAST]), [0, 0, 1, 1, 2], 1, True, id="a broadcast wakes all"),
        pytest.param((IMPATIENT,), [0, 0], 0, True, id="who gave up needs none"),
        pytest.param(([MEET], [MEET]), [0], 0, False, id="a barrier waits"),
        pytest.param(([MEET], [MEET]), [0, 1], 0, True, id="for all"),
        pytest.param(([MEET, MEET], [MEET, MEET]), [0, 1, 0, 0], 0, False, id="in every round"),
        pytest.param((RUN_ONCE, [call(Kind.ONCE, ONCE)]), [0, 0], 1, False, id="the routine is running"),
        pytest.param((RUN_ONCE, [call(Kind.ONCE, ONCE)]), [0, 0, 0], 1, True, id="it has run"),
        pytest.param(([LOCKED], [call(Kind.MUTEX_TRYLOCK, LOCK, 130)]), [0], 1, False, id="its owner died"),
    ],
)  # fmt: skip
def test_a_rule(rows, order, thread, may):
    assert Threads(*rows).do(*order).may(thread) is may


def test_a_barrier_with_fewer_parties_than_threads():
    count = call(Kind.BARRIER_INIT, BAR, 2)
    rows = ([count, MEET], [MEET], [MEET])
    assert Threads(*rows).do(0, 0, 2).may(0)
    assert not Threads(*rows).do(0, 0).may(0)
    assert not Threads(*rows).do(0, 0, 1, 2).may(2)


def test_who_sleeps_for_ever_gets_no_signal():
    lasting = [LOCKED, call(Kind.COND_WAIT, COND, old=LOCK, after=0)]
    assert not Threads(lasting, [SIGNAL], deadlocked=True).do(0, 0).may(1)
    assert not Threads(lasting, [BROADCAST], deadlocked=True).do(0, 0).may(1)
    assert Threads(lasting, [SIGNAL], deadlocked=True).may(1)
    assert Threads(lasting, [SIGNAL], SLEEP, deadlocked=True).do(0, 0, 2, 2).may(1)  # the other gets it
    assert not Threads(lasting, [SIGNAL, SIGNAL], SLEEP, deadlocked=True).do(0, 0, 2, 2, 1).may(1)
    assert Threads(lasting, [SIGNAL]).do(0, 0).may(1)  # the run ended otherwise
