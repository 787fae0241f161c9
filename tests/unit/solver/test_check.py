"""The walk accepts what happened, and refuses every order and every value that cannot have been."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.solver.made import (
    BAR,
    COND,
    LOCK,
    ONCE,
    RW,
    SEM,
    X,
    Y,
    call,
    changed,
    problem_of,
    read,
    rmw,
    threads,
    truth_of,
    workers,
    write,
)
from tests.unit.solver.programs import STYLES, VARIABLES, simulated

from recbulc.recorders.events import Flag, Kind
from recbulc.schedule import Part
from recbulc.solver.check import check_order, check_stamps, shared_bytes
from recbulc.solver.solve import steps_of

SEEDS = st.integers(0, 10**6)


def truth(seed, style, count=3, length=8):
    simulator, recording = simulated(seed, style, count, length)
    problem = problem_of(recording, stamps=True)
    return recording, steps_of(problem, tuple(truth_of(simulator, problem)))


@settings(max_examples=15, deadline=None, derandomize=True)
@given(SEEDS, st.sampled_from(STYLES), st.integers(2, 4))
def test_what_happened_is_accepted(seed, style, count):
    recording, steps = truth(seed, style, count)
    assert check_order(recording, steps) == []
    assert check_stamps(recording, steps) == []


@settings(max_examples=15, deadline=None, derandomize=True)
@given(SEEDS)
def test_a_mutated_value_is_refused(seed):
    """Counting up: every value that is read was written, or is read again."""
    recording, steps = truth(seed, "increments")
    rng = random.Random(seed)
    log = recording.threads
    reads = [(t, e) for t, e, _ in steps if log[t][e]["kind"] == Kind.READ and log[t][e]["size"] == 8][1:]
    t, e = rng.choice(reads)
    wrong = int(log[t][e]["value"]) ^ (1 << rng.randrange(64))
    assert check_order(changed(recording, t, e, value=wrong), steps)
    writes = [(t, e) for t, e, _ in steps if log[t][e]["kind"] == Kind.WRITE][:-1]
    seen = {int(log[t][e]["value"]) for t, e in reads}
    t, e = rng.choice([(t, e) for t, e in writes if int(log[t][e]["value"]) in seen])
    elsewhere = [w for w in writes if w != (t, e) and log[w[0]][w[1]]["value"] == log[t][e]["value"]]
    if not elsewhere:
        assert check_order(changed(recording, t, e, value=10**6), steps)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(SEEDS, st.sampled_from(STYLES), st.integers(2, 3))
def test_program_order_must_be_kept(seed, style, count):
    recording, steps = truth(seed, style, count)
    rng = random.Random(seed)
    places = [n for n in range(1, len(steps)) if steps[n - 1][0] == steps[n][0]]
    n = rng.choice(places)
    once = [recording.threads[t][e]["kind"] == Kind.ONCE for t, e, _ in steps[n - 1 : n + 1]]
    if not any(once):
        swapped = [*steps[: n - 1], steps[n], steps[n - 1], *steps[n + 1 :]]
        assert any("program order" in text for text in check_order(recording, swapped))


@settings(max_examples=20, deadline=None, derandomize=True)
@given(SEEDS)
def test_a_write_moved_across_a_read_of_its_variable_is_refused(seed):
    recording, steps = truth(seed, "increments")
    log = recording.threads

    def conflict(a, b):
        one, other = log[a[0]][a[1]], log[b[0]][b[1]]
        kinds = [int(one["kind"]), int(other["kind"])]
        same = one["object"] == other["object"] == VARIABLES[0]
        return same and kinds == [Kind.WRITE, Kind.READ] and a[0] != b[0]

    written = {}
    for n, (t, e, _) in enumerate(steps[1:], 1):
        before = written.get(int(log[steps[n - 1][0]][steps[n - 1][1]]["object"]))
        if conflict(steps[n - 1], steps[n]) and before not in (None, int(log[t][e]["value"])):
            swapped = [*steps[: n - 1], steps[n], steps[n - 1], *steps[n + 1 :]]
            assert check_order(recording, swapped), n
        earlier = log[steps[n - 1][0]][steps[n - 1][1]]
        if earlier["kind"] == Kind.WRITE:
            written[int(earlier["object"])] = int(earlier["value"])


@settings(max_examples=15, deadline=None, derandomize=True)
@given(SEEDS, st.sampled_from(STYLES))
def test_what_stamps_prove_must_be_kept(seed, style):
    recording, steps = truth(seed, style)
    problem = problem_of(recording, stamps=True)
    at = {
        (t, int(lane.ops.index[i]), int(lane.ops.part[i])): (t, i)
        for t, lane in enumerate(problem.lanes)
        for i in range(len(lane))
    }
    direct = [step for step in steps if step in at]
    for n in range(1, len(direct)):
        (t, i), (u, j) = at[direct[n - 1]], at[direct[n]]
        one, other = problem.lanes[t].ops, problem.lanes[u].ops
        if t == u or not one.ended[i]:
            continue
        x, y = int(one.events["core_after"][i]), int(other.events["core"][j])
        hi = 0 if x == y else recording.interval(x, y)[1]
        swapped = [*direct[: n - 1], direct[n], direct[n - 1], *direct[n + 1 :]]
        assert bool(check_stamps(recording, swapped)) == (one.after[i] + hi < other.before[j])


READ_SIDE = [call(Kind.RW_RDLOCK, RW), call(Kind.RW_UNLOCK, RW)]
WRITE_SIDE = [call(Kind.RW_WRLOCK, RW), call(Kind.RW_UNLOCK, RW)]
W, B, E = Part.WHOLE, Part.BEGIN, Part.END
LOCKED, UNLOCKED = call(Kind.MUTEX_LOCK, LOCK), call(Kind.MUTEX_UNLOCK, LOCK)
SLEEP = [LOCKED, call(Kind.COND_WAIT, COND, old=LOCK)]


@pytest.mark.parametrize(
    ("rows", "right", "wrong", "what"),
    [
        (
            ([LOCKED, UNLOCKED], [LOCKED, UNLOCKED]),
            [(1, 1, W), (1, 2, W), (2, 1, W), (2, 2, W)],
            [(1, 1, W), (2, 1, W), (1, 2, W), (2, 2, W)],
            "took a lock that another thread held",
        ),
        (
            ([LOCKED, UNLOCKED], [call(Kind.MUTEX_TRYLOCK, LOCK, 16)]),
            [(1, 1, W), (2, 1, W), (1, 2, W)],
            [(1, 1, W), (1, 2, W), (2, 1, W)],
            "found a lock held that nobody held",
        ),
        (
            (READ_SIDE, WRITE_SIDE),
            [(1, 1, W), (1, 2, W), (2, 1, W), (2, 2, W)],
            [(1, 1, W), (2, 1, W), (1, 2, W), (2, 2, W)],
            "took a lock that another thread held",
        ),
        (
            (READ_SIDE, WRITE_SIDE),
            [(2, 1, W), (2, 2, W), (1, 1, W), (1, 2, W)],
            [(2, 1, W), (1, 1, W), (2, 2, W), (1, 2, W)],
            "shared a lock that another thread held",
        ),
        (
            ([call(Kind.SEM_INIT, SEM, 0), call(Kind.SEM_POST, SEM)], [call(Kind.SEM_WAIT, SEM)]),
            [(1, 1, W), (1, 2, W), (2, 1, W)],
            [(1, 1, W), (2, 1, W), (1, 2, W)],
            "took from an empty semaphore",
        ),
        (
            ([call(Kind.SEM_INIT, SEM, 0), call(Kind.SEM_POST, SEM)], [call(Kind.SEM_TRYWAIT, SEM, 11)]),
            [(1, 1, W), (2, 1, W), (1, 2, W)],
            [(1, 1, W), (1, 2, W), (2, 1, W)],
            "found a semaphore empty that was not",
        ),
        (
            (SLEEP, [call(Kind.COND_SIGNAL, COND)]),
            [(1, 1, W), (1, 2, B), (2, 1, W), (1, 2, E)],
            [(1, 1, W), (2, 1, W), (1, 2, B), (1, 2, E)],
            "was woken by no signal",
        ),
        (
            (SLEEP, SLEEP, [call(Kind.COND_SIGNAL, COND), call(Kind.COND_BROADCAST, COND)]),
            [(1, 1, W), (1, 2, B), (2, 1, W), (2, 2, B), (3, 1, W), (3, 2, W), (1, 2, E)],
            [(1, 1, W), (1, 2, B), (2, 1, W), (2, 2, B), (3, 1, W), (1, 2, E), (2, 2, E)],
            "was woken by no signal",
        ),
        (
            ([call(Kind.BARRIER_WAIT, BAR)], [call(Kind.BARRIER_WAIT, BAR)]),
            [(1, 1, B), (2, 1, B), (1, 1, E), (2, 1, E)],
            [(1, 1, B), (1, 1, E), (2, 1, B), (2, 1, E)],
            "left a barrier before all had come",
        ),
        (
            ([call(Kind.ONCE, ONCE, flags=Flag.RAN)], [call(Kind.ONCE, ONCE)]),
            [(1, 1, B), (1, 1, E), (2, 1, W)],
            [(1, 1, B), (2, 1, W), (1, 1, E)],
            "returned before the routine had run",
        ),
        (
            ([rmw(X, 0, 1)], [rmw(X, 1, 2)]),
            [(1, 1, W), (2, 1, W)],
            [(2, 1, W), (1, 1, W)],
            "but byte 0 in memory is",
        ),
        (
            ([write(X, 0x0102, 2)], [read(X, 0, 1), read(X + 1, 1, 1)]),
            [(2, 1, W), (1, 1, W), (2, 2, W)],
            [(1, 1, W), (2, 1, W), (2, 2, W)],
            "but byte 0 in memory is 0x2",
        ),
    ],
)  # fmt: skip
def test_a_rule(rows, right, wrong, what):
    recording = workers(*rows)
    started = [(0, t, W) for t in range(len(rows))] + [(t, 0, W) for t in range(1, len(rows) + 1)]
    assert check_order(recording, started + right) == []
    assert any(what in text for text in check_order(recording, started + wrong))


def test_threads_begin_after_their_creation_and_are_joined_after_their_end():
    recording = workers([write(X, 1)])
    right = [(0, 0, W), (1, 0, W), (1, 1, W), (1, 2, W), (0, 1, W), (0, 2, W)]
    assert check_order(recording, right) == []
    early = [(1, 0, W), *right[:1], *right[2:]]
    assert check_order(recording, early) == ["thread 1, event 0 (THREAD_START): its thread was not created yet"]
    late = [*right[:3], right[4], right[3], right[5]]
    assert check_order(recording, late) == ["thread 0, event 1 (JOIN): joined a thread that had not ended"]


def test_a_thread_that_slept_for_ever_was_never_signalled():
    signal = [call(Kind.COND_SIGNAL, COND)]
    lasting = [LOCKED, call(Kind.COND_WAIT, COND, old=LOCK, after=0)]
    recording = workers(lasting, SLEEP, signal, deadlocked=True)
    begun = [(0, 0, W), (0, 1, W), (0, 2, W), (1, 0, W), (2, 0, W), (3, 0, W)]
    asleep, other = [(1, 1, W), (1, 2, B)], [(2, 1, W), (2, 2, B)]
    assert check_order(recording, [*begun, *other, *asleep, (3, 1, W), (2, 2, E)]) == []
    assert check_order(recording, [*begun, (3, 1, W), *asleep]) == []
    complaints = check_order(recording, [*begun, *asleep, (3, 1, W)])
    assert complaints == ["thread 3, event 1 (COND_SIGNAL): would have woken a thread that slept for ever"]
    ended = workers(lasting, SLEEP, signal)  # the run ended for another reason
    assert check_order(ended, [*begun, *asleep, (3, 1, W)]) == []


def test_only_named_reads_may_be_unexplained():
    recording = workers([write(X, 1)], [read(X, 7)])
    steps = [(0, 0, W), (0, 1, W), (1, 0, W), (1, 1, W), (2, 0, W), (2, 1, W)]
    assert check_order(recording, steps)
    assert check_order(recording, steps, external=[(2, 1)]) == []
    assert check_order(recording, steps, external=[(1, 1)])


def test_bytes_of_one_thread_are_its_own_affair():
    """An access may cover both; the private byte was changed by an access that no order holds."""
    recording = threads([write(X, 5, 1), read(X, 0x0905, 2)], [read(X, 5, 1)])
    assert shared_bytes(recording) == [X]
    assert check_order(recording, [(0, 0, W), (0, 1, W)]) == []


def test_bytes_are_shared_by_who_frees_them():
    recording = threads([write(X, 5, 1), read(Y, 1)], [call(Kind.FREE, X, 8), read(Y, 2)])
    assert shared_bytes(recording) == [X]
