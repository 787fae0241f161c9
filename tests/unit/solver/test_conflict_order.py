"""What remains of an order: waits whose closure with program order orders every conflicting pair, and no wait more."""

from itertools import combinations, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.solver.made import COND, LOCK, X, Y, call, problem_of, read, truth_of, workers, write
from tests.unit.solver.programs import STYLES, simulated

from recbulc.recorders.events import Kind
from recbulc.schedule import Part
from recbulc.solver.check import check_order
from recbulc.solver.conflict_order import LASTS, faulted, reduce_order, up_to_failure
from recbulc.solver.solve import steps_of

RUNS = given(st.integers(0, 10**6), st.sampled_from(STYLES), st.integers(2, 4))
SOME = settings(max_examples=20, deadline=None, derandomize=True)
MEMORY = (Kind.READ, Kind.WRITE, Kind.RMW)


def reduced(seed, style, count, length=8):
    simulator, recording = simulated(seed, style, count, length)
    problem = problem_of(recording)
    signalled = style == "crash"
    kept = up_to_failure(problem, truth_of(simulator, problem), signalled=signalled)
    return recording, problem, kept, reduce_order(problem, kept)


def touched(problem, t, i):
    """{what: is it changed}, written down once more."""
    ops, lane = problem.lanes[t].ops, problem.lanes[t]
    event, part = ops.events[i], int(ops.part[i])
    kind, thing = int(event["kind"]), int(event["object"])
    found = {("cell", cell): False for cell, _ in lane.reads[i]}
    found |= {("cell", cell): True for cell, _ in lane.writes[i]}
    if kind in MEMORY:
        return found
    changes = part != Part.BLOCKED
    if kind in (Kind.MALLOC, Kind.FREE):
        found["heap"] = True
    if Kind.MUTEX_LOCK <= kind <= Kind.BARRIER_INIT:
        found["object", thing] = changes
    if kind == Kind.COND_WAIT:
        found["object", int(event["old"])] = changes
    if kind == Kind.JOIN and changes:
        found["thread", int(event["value"])] = True
    if kind == Kind.THREAD_END:
        found["thread", t] = True
    return found


def closure(problem, found):
    """Which operations are before each, as sets: by the waits, program order, and creation."""
    listed = [[i for u, i in found.order if u == t] for t in range(len(problem.lanes))]
    creator = {}
    for t, i in found.order:
        if problem.lanes[t].ops.kind[i] == Kind.CREATE:
            creator[int(problem.lanes[t].ops.events["value"][i])] = (t, i)
    before = {}
    previous = {}
    for t, i in found.order:
        direct = [(u, listed[u][count - 1]) for u, count in found.waits[t, i]]
        direct += [previous[t]] if t in previous else [creator[t]] if t in creator else []
        assert all(where in before for where in direct), "an operation stands before one that it waits for"
        before[t, i] = set(direct).union(*(before[where] for where in direct))
        previous[t] = (t, i)
    return before


@SOME
@RUNS
def test_every_conflicting_pair_is_ordered_as_it_was(seed, style, count):
    _, problem, kept, found = reduced(seed, style, count)
    before = closure(problem, found)
    place = {where: n for n, where in enumerate(kept)}
    what = {where: touched(problem, *where) for where in found.order}
    for a, b in combinations(found.order, 2):
        if a[0] != b[0] and any(what[a][x] or what[b][x] for x in what[a].keys() & what[b].keys()):
            first, second = sorted((a, b), key=place.__getitem__)
            assert first in before[second], (first, second)


def final(problem, t, i):
    """It waits for every thread by itself."""
    return problem.lanes[t].ops.kind[i] in LASTS or faulted(problem, t, i)


@SOME
@RUNS
def test_every_wait_is_needed(seed, style, count):
    _, problem, _, found = reduced(seed, style, count, 5)
    listed = [[i for u, i in found.order if u == t] for t in range(len(problem.lanes))]
    before = closure(problem, found)
    previous = {}
    for t, i in found.order:
        direct = [(u, listed[u][n - 1]) for u, n in found.waits[t, i]]
        for where in direct if not final(problem, t, i) else ():
            others = [other for other in direct if other != where]
            others += [previous[t]] if t in previous else []
            assert not any(where == other or where in before[other] for other in others), (where, (t, i))
            mine, theirs = touched(problem, t, i), touched(problem, *where)
            assert any(mine[x] or theirs[x] for x in mine.keys() & theirs.keys()), (where, (t, i))
        previous[t] = (t, i)


@SOME
@RUNS
def test_the_new_interleaving_explains_the_recording_too(seed, style, count):
    recording, problem, kept, found = reduced(seed, style, count)
    starts = [(t, i) for t, i in kept if problem.lanes[t].ops.kind[i] == Kind.THREAD_START]
    assert sorted(found.order + starts) == sorted(kept)
    assert check_order(recording, steps_of(problem, tuple(found.order))) == []


@SOME
@RUNS
def test_switches_are_counted_and_fewer(seed, style, count):
    _, _, kept, found = reduced(seed, style, count)

    def switches(order):
        return sum(a[0] != b[0] for a, b in pairwise(order))

    assert found.switches == switches(found.order)
    assert found.switches <= switches([where for where in kept if where in set(found.order)])


@SOME
@RUNS
def test_what_ends_the_run_waits_for_all_that_came_before(seed, style, count):
    _, problem, kept, found = reduced(seed, style, count)
    t, i = kept[-1]
    if problem.lanes[t].ops.kind[i] in LASTS:
        assert closure(problem, found)[t, i] == set(found.order) - {(t, i)}
        assert sum(problem.lanes[u].ops.kind[j] in LASTS for u, j in kept) == 1


def test_a_chain_needs_no_shortcut():
    """1 → 2 → 3 on X: that 3 comes after 1 follows."""
    problem = problem_of(workers([write(X, 1)], [read(X, 1), write(X, 2)], [read(X, 2)]))
    order = [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (3, 0), (1, 1), (2, 1), (2, 2), (3, 1)]
    waits = reduce_order(problem, order).waits
    assert waits[2, 1] == ((1, 1),)
    assert waits[3, 1] == ((2, 2),)


def test_reads_are_not_ordered():
    problem = problem_of(workers([write(X, 1), write(Y, 1)], [read(X, 1)], [read(X, 1)]))
    order = [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (3, 0), (1, 1), (1, 2), (2, 1), (3, 1)]
    found = reduce_order(problem, order)
    assert (found.waits[2, 1], found.waits[3, 1]) == (((1, 1),), ((1, 1),))


def test_calls_that_never_returned_stand_at_the_end():
    """A blocked lock and a wait that nobody ends."""
    section = [call(Kind.MUTEX_LOCK, LOCK), call(Kind.COND_WAIT, COND, old=LOCK, after=0)]
    problem = problem_of(workers(section, [call(Kind.MUTEX_LOCK, LOCK, after=0)], deadlocked=True))
    order = [(0, 0), (0, 1), (1, 0), (2, 0), (1, 1), (1, 2)]
    kept = up_to_failure(problem, order, signalled=False)
    parts = [(t, problem.lanes[t].ops.part[i]) for t, i in kept[6:]]
    assert (2, Part.BLOCKED) in parts
    assert kept[:6] == order
