"""z3 and the search agree; windows that the search cannot settle are settled; a clash names its facts."""

import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.solver.made import (
    COND,
    LOCK,
    ONCE,
    SEM,
    X,
    Y,
    call,
    changed,
    problem_of,
    read,
    rmw,
    threads,
    workers,
    write,
)
from tests.unit.solver.programs import STYLES, simulated

import recbulc.solver
from recbulc.recorders.events import Flag, Kind
from recbulc.solver import solve, z3_windows
from recbulc.solver.encode import encode
from recbulc.solver.encode_places import whole
from recbulc.solver.encode_terms import AllOf, AnyOf, AtLeast, Before, Fact, Query, all_of, any_of, at_least
from recbulc.solver.frontier import Frontier, Stuck
from recbulc.solver.saturate import saturate
from recbulc.solver.solve import find_order
from recbulc.solver.z3_backend import ask
from recbulc.solver.z3_windows import Windows

SEEDS = st.integers(0, 10**6)
LONG = 5
SIZES = {"increments": 6, "mixed": 8, "conditions": 4, "lossy": 5, "barriers": 4, "crash": 6}


def never():
    return False


@settings(max_examples=15, deadline=None, derandomize=True)
@given(SEEDS, st.sampled_from(STYLES), st.integers(2, 3), st.booleans())
def test_both_explain_what_happened(seed, style, count, stamps):
    _, recording = simulated(seed, style, count, SIZES[style])
    assert find_order(recording, timestamps=stamps, engine="z3").status == "sat"
    assert find_order(recording, timestamps=stamps).status == "sat"


def accesses(recording):
    return [
        (t, e)
        for t, log in enumerate(recording.threads)
        for e, kind in enumerate(log["kind"].tolist())
        if kind in (Kind.READ, Kind.WRITE, Kind.RMW)
    ]


MUTATED = [(seed, STYLES[seed % len(STYLES)]) for seed in range(18)]


def mutations():
    """Recordings with the value of one access taken from another."""
    for seed, style in MUTATED:
        _, recording = simulated(seed, style, 3, SIZES[style])
        places = accesses(recording)
        if len(places) < 2:
            continue
        a, b = places[seed % len(places)], places[(seed * 7 + 3) % len(places)]
        value = int(recording.threads[b[0]][b[1]]["value"]) & 0xFF
        yield seed, changed(recording, *a, value=value)


def test_both_agree_on_recordings_that_may_have_no_order():
    verdicts = []
    for seed, recording in mutations():
        search, all_at_once = find_order(recording), find_order(recording, engine="z3")
        assert search.status == all_at_once.status, (seed, search.why, all_at_once.why)
        assert search.status in ("sat", "unsat")
        verdicts.append(search.status)
    assert {"sat", "unsat"} <= set(verdicts)


def contradictory(*rows, **how):
    """Whether an order exists, by both engines without what saturation finds out."""
    recording = workers(*rows, **({"before": ZERO} | how))
    found = []
    for engine in ("frontier", "z3"):
        problem = problem_of(recording)
        frontier = Frontier(problem, never)
        windows = Windows(frontier, time.monotonic() + 30)
        try:
            way = windows.settle_all() if engine == "z3" else frontier.run(windows.settle)
            found.append(way is None)
        except z3_windows.Clash as clash:
            found.append(bool(clash.facts))
    assert found[0] == found[1]
    return found[0]


LOCKED, UNLOCKED, BUSY = call(Kind.MUTEX_LOCK, LOCK), call(Kind.MUTEX_UNLOCK, LOCK), call(Kind.MUTEX_TRYLOCK, LOCK, 16)
SLEEP = [LOCKED, call(Kind.COND_WAIT, COND, old=LOCK), UNLOCKED]
LASTING = [LOCKED, call(Kind.COND_WAIT, COND, old=LOCK, after=0)]
SIGNAL = call(Kind.COND_SIGNAL, COND)
POST, TAKE, EMPTY = call(Kind.SEM_POST, SEM), call(Kind.SEM_WAIT, SEM), call(Kind.SEM_TRYWAIT, SEM, 11)
READ_LOCK, WRITE_LOCK = call(Kind.RW_RDLOCK, LOCK), call(Kind.RW_WRLOCK, LOCK)
RW_UNLOCK = call(Kind.RW_UNLOCK, LOCK)
ONCE_RUN = call(Kind.ONCE, ONCE, flags=Flag.RAN, after=10_350)
ZERO = (write(X, 0), write(Y, 0))


@pytest.mark.parametrize(
    ("rows", "how", "clash"),
    [
        pytest.param(
            ([LOCKED, write(X, 1), write(X, 2), UNLOCKED], [LOCKED, read(X, 1), UNLOCKED]), {}, True,
            id="a section is not looked into",
        ),
        pytest.param(
            ([LOCKED, write(X, 1), UNLOCKED, write(X, 2)], [LOCKED, read(X, 1), UNLOCKED]), {}, False,
            id="but behind its end",
        ),
        pytest.param(
            ([LOCKED, LOCKED, write(X, 1), UNLOCKED, write(X, 2), UNLOCKED], [LOCKED, read(X, 1), UNLOCKED]), {}, True,
            id="a recursive section ends with its outermost half",
        ),
        pytest.param(
            ([LOCKED, write(X, 1), UNLOCKED], [read(X, 1), BUSY]), {}, False, id="busy while X is 1",
        ),
        pytest.param(
            ([LOCKED, UNLOCKED, write(X, 1)], [read(X, 1), BUSY]), {}, True, id="not busy any more",
        ),
        pytest.param(
            ([READ_LOCK, write(X, 1), read(Y, 1), RW_UNLOCK], [READ_LOCK, write(Y, 1), read(X, 1), RW_UNLOCK]), {},
            False, id="readers overlap",
        ),
        pytest.param(
            ([READ_LOCK, write(X, 1), read(Y, 1), RW_UNLOCK], [WRITE_LOCK, write(Y, 1), read(X, 1), RW_UNLOCK]), {},
            True, id="readers and writers do not",
        ),
        pytest.param(
            ([write(X, 1), POST], [TAKE, read(X, 0)]), {"before": (call(Kind.SEM_INIT, SEM, 0), *ZERO)}, True,
            id="who took the token saw what came before it",
        ),
        pytest.param(
            ([write(X, 1), POST], [TAKE, read(X, 0)]), {"before": (call(Kind.SEM_INIT, SEM, 1), *ZERO)}, False,
            id="unless there was another",
        ),
        pytest.param(
            ([POST, write(X, 1)], [read(X, 1), EMPTY]), {"before": (call(Kind.SEM_INIT, SEM, 0), *ZERO)}, True,
            id="a posted semaphore is not empty",
        ),
        pytest.param(
            ([POST, write(X, 1)], [read(X, 1), EMPTY], [TAKE]), {"before": (call(Kind.SEM_INIT, SEM, 0), *ZERO)}, False,
            id="but one that was taken from",
        ),
        pytest.param(
            ([*SLEEP, read(X, 0)], [write(X, 1), SIGNAL]), {}, True, id="who was woken saw it all",
        ),
        pytest.param(
            ([*SLEEP, read(X, 0)], [write(X, 1), SIGNAL], [SIGNAL]), {}, False, id="or somebody else woke it",
        ),
        pytest.param(
            (SLEEP, SLEEP, [SIGNAL]), {}, True, id="one signal for two",
        ),
        pytest.param(
            ([*LASTING], [read(X, 1), SIGNAL], [LOCKED, write(X, 1), UNLOCKED]), {"deadlocked": True},
            False, id="a signal came too early",
        ),
        pytest.param(
            ([write(X, 1), *LASTING], [LOCKED, read(X, 1), SIGNAL, UNLOCKED]), {"deadlocked": True},
            False, id="under the mutex, too",
        ),
        pytest.param(
            ([LOCKED, write(X, 1), *LASTING[1:]], [LOCKED, read(X, 1), SIGNAL, UNLOCKED]),
            {"deadlocked": True}, True, id="it would have woken who slept for ever",
        ),
        pytest.param(
            ([write(X, 1), ONCE_RUN, read(Y, 0), write(Y, 1)], [call(Kind.ONCE, ONCE), read(Y, 0)]), {},
            False, id="the routine had run",
        ),
    ],
)  # fmt: skip
def test_a_rule(rows, how, clash):
    assert contradictory(*rows, **how) is clash


def test_a_clash_names_its_facts():
    """Both halves of a swap, each of which would have to be first; saturation sees cycles only."""
    section = [LOCKED, write(X, 1), write(X, 2), UNLOCKED]
    recording = workers(section, [LOCKED, read(X, 1), UNLOCKED], [write(Y, 1)], before=ZERO)
    problem = problem_of(recording)
    with pytest.raises(z3_windows.Clash) as found:
        Windows(Frontier(problem, never), time.monotonic() + 30).settle_all()
    text = solve.describe_clash(problem, found.value)
    assert "what was seen by READ (thread 2, event 2)" in text
    assert "MUTEX_LOCK (thread 1, event 1) excludes MUTEX_LOCK (thread 2, event 1)" in text
    assert "thread 3" not in text


def stuck_runs():
    """Runs that the search alone cannot settle within no dead end at all."""
    for seed in range(400):
        style = STYLES[seed % len(STYLES)]
        _, recording = simulated(seed, style, 3, 12)
        for stamps in (True, False):
            problem = problem_of(recording, stamps=stamps)
            saturate(problem)
            try:
                Frontier(problem, never).run(dead_ends=0)
            except Stuck:
                yield recording, stamps


def test_windows_that_the_search_cannot_settle():
    settled = 0
    for recording, stamps in stuck_runs():
        found = find_order(recording, timestamps=stamps, dead_ends=0)
        assert found.status == "sat", found.why
        assert found.figures.windows >= 1
        assert found.figures.z3_seconds > 0
        settled += 1
        if settled == 3:
            return
    pytest.fail(f"only {settled} runs were stuck")


def test_a_window_is_small_and_grows_until_it_has_an_order(monkeypatch):
    """What goes to z3 is some operations around where the search is stuck, and most is found by the search."""
    sizes = []

    def counting(query, seconds, *, explain=False):
        sizes.append(len(query.operations))
        return ask(query, seconds, explain=explain)

    monkeypatch.setattr(z3_windows, "ask", counting)
    _, recording = simulated(LONG, "increments", 4, 120)
    found = find_order(recording, timestamps=False, dead_ends=0)
    assert found.status == "sat"
    assert found.figures.windows
    assert sizes[0] < 120
    assert min(sizes) < found.figures.accesses / 4


def test_a_window_without_an_order_is_no_proof(monkeypatch):
    """Only the whole problem may be called contradictory: the first window gets too little of it."""
    monkeypatch.setattr(z3_windows, "BACK", 1)
    monkeypatch.setattr(z3_windows, "AHEAD", 1)
    recordings = stuck_runs()
    for _ in range(2):
        recording, stamps = next(recordings)
        assert find_order(recording, timestamps=stamps, dead_ends=0).status == "sat"


def test_time_is_respected():
    """A whole trace is too much for z3; what it was is said."""
    _, recording = simulated(3, "increments", 4, 400)
    start = time.monotonic()
    found = find_order(recording, timestamps=False, engine="z3", timeout_s=1.0)
    assert found.status == "timeout"
    assert "z3 found no order of" in found.why
    assert time.monotonic() - start < 20
    assert found.figures.accesses > 1000


def terms(term):
    yield term
    if isinstance(term, (AllOf, AnyOf, AtLeast)):
        for part in term.parts:
            yield from terms(part)


def choices(recording, *, stamps):
    problem = problem_of(recording, stamps=stamps)
    saturate(problem)
    frontier = Frontier(problem, never)
    query = encode(problem, frontier.machine, frontier.needs, whole(problem))
    return sum(isinstance(part, AnyOf) for fact in query.facts for part in terms(fact.term))


def test_what_is_known_is_not_asked():
    """Values that chain leave no choice, and stamps remove choices before z3 sees them."""
    counting = [rmw(X, 0, 1), rmw(X, 2, 3)], [rmw(X, 1, 2), rmw(X, 3, 4)]
    assert choices(threads(*counting), stamps=False) == 0
    _, recording = simulated(4, "mixed", 3, 20)
    assert choices(recording, stamps=True) < choices(recording, stamps=False) / 4


def test_terms_are_as_short_as_they_get():
    a, b, c = Before(0, 1), Before(1, 2), Before(2, 3)
    assert all_of([]) is True
    assert any_of([]) is False
    assert all_of([a, True]) == a
    assert all_of([a, False]) is False
    assert any_of([a, False]) == a
    assert any_of([a, True]) is True
    assert at_least(0, [a]) is True
    assert at_least(2, [True, True, a]) is True
    assert at_least(2, [True, a, b]) == any_of([a, b])
    assert at_least(2, [a, b]) == all_of([a, b])
    assert at_least(3, [a, b]) is False
    assert at_least(2, [a, b, c, False]) == AtLeast(2, (a, b, c))


def test_the_backend():
    query = Query([(0, 0), (1, 0), (2, 0)], required=2)
    query.facts = [Fact(any_of([Before(1, 0), Before(0, 1)]), ((0, 0),)), Fact(Before(1, 0), ((1, 0),))]
    answer = ask(query, 10)
    assert answer.status == "sat"
    assert answer.places[1] < answer.places[0] < answer.places[3]
    query.facts += [Fact(Before(3, 2), ((2, 0),)), Fact(Before(0, 1), ((0, 0), (1, 0)))]
    answer = ask(query, 10, explain=True)
    assert answer.status == "unsat"
    assert [fact.term for fact in answer.clash] == [Before(1, 0), Before(0, 1)]
    assert ask(query, 0).status == "unknown"


def test_one_file_knows_z3():
    folder = Path(recbulc.solver.__file__).resolve().parent
    assert [path.name for path in folder.glob("*.py") if re.search(r"^import z3|^from z3", path.read_text(), re.M)] == [
        "z3_backend.py"
    ]
