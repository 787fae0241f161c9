"""From a recording to a schedule, or to a sentence that says why there is none."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.solver.made import LOCK, X, Y, call, read, threads, trace_of, workers, write
from tests.unit.solver.programs import STYLES, simulated

from recbulc.ordering.order import partial_order
from recbulc.recorders.events import Flag, Kind
from recbulc.schedule import load_schedule
from recbulc.solver import solve as module
from recbulc.solver.check import check_order, check_stamps
from recbulc.solver.solve import find_order, solve, steps_of

ENGINES = ["frontier", "z3"]
ZERO = (write(X, 0), write(Y, 0))
LOCKED, UNLOCKED = call(Kind.MUTEX_LOCK, LOCK), call(Kind.MUTEX_UNLOCK, LOCK)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from(STYLES), st.integers(2, 4), st.booleans())
def test_an_order_is_found_and_explains_every_value(seed, style, count, stamps):
    _, recording = simulated(seed, style, count)
    found = find_order(recording, timestamps=stamps)
    assert found.status == "sat", found.why
    steps = steps_of(found.problem, found.order)
    assert check_order(recording, steps) == []
    assert not stamps or check_stamps(recording, steps) == []


@pytest.mark.parametrize("style", STYLES)
def test_stamps_leave_less_open(style):
    open_with, open_without = 0, 0
    for seed in range(4):
        _, recording = simulated(seed, style, 3, 10)
        with_stamps, without = find_order(recording), find_order(recording, timestamps=False)
        assert with_stamps.status == without.status == "sat"
        assert with_stamps.figures.accesses == without.figures.accesses
        assert with_stamps.figures.constraints_before == without.figures.constraints_before
        assert with_stamps.figures.constraints <= without.figures.constraints
        assert with_stamps.figures.ordered_fraction >= without.figures.ordered_fraction
        open_with += with_stamps.figures.unknowns
        open_without += without.figures.unknowns
    assert open_with < open_without or not open_without


@pytest.mark.parametrize("style", STYLES)
def test_the_same_recording_gives_the_same_schedule(style, tmp_path):
    texts = []
    for n in range(2):
        solution = solve(trace_of(simulated(3, style, 3)[1]))
        assert solution.status == "sat", solution.why
        solution.schedule.save(tmp_path / str(n))
        texts.append((tmp_path / str(n)).read_text())
        assert load_schedule(tmp_path / str(n)) == solution.schedule
    assert texts[0] == texts[1]
    assert solution.switches > 0
    assert not solution.external


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("stamps", [True, False])
def test_threads_that_disagree_about_the_order_of_two_writes(engine, stamps):
    rows = [write(X, 1)], [write(X, 2)], [read(X, 1, site=3), read(X, 2)], [read(X, 2), read(X, 1, site=4)]
    recording = workers(*rows, before=ZERO)
    found = find_order(recording, timestamps=stamps, engine=engine)
    assert found.status == "unsat"
    assert found.why.startswith("no order explains the recording; these facts clash: what was seen by ")
    assert "READ (thread 3, event" in found.why
    assert found.clash
    solution = solve(trace_of(recording), timestamps=stamps, engine=engine)
    assert (solution.status, solution.schedule) == ("unsat", None)
    assert "READ (thread 0.3, event" in solution.why
    assert "(at bug.c:" in solution.why


@pytest.mark.parametrize("engine", ENGINES)
def test_a_clash_that_only_trying_finds(engine):
    """Each value has two writes, so that nothing follows at once; but no way to choose them fits."""
    writers = [write(X, 1), write(X, 2)], [write(X, 1), write(X, 2)]
    reader = [read(X, value, site=value) for value in (2, 1, 2, 1)]
    recording = workers(*writers, reader, before=ZERO)
    found = find_order(recording, engine=engine)
    assert found.status == "unsat"
    assert "READ (thread 3, event" in found.why
    assert found.figures.accesses == 9
    possible = workers(*writers, reader[:3], before=ZERO)
    assert find_order(possible, engine=engine).status == "sat"


def test_stamps_that_contradict_the_locks():
    """By the stamps each section has its beginning before the other's end; by their lock they exclude each other."""
    rows = [LOCKED | {"before": 20_000, "after": 20_010}, UNLOCKED | {"before": 20_500, "after": 20_510}]
    recording = workers(rows, rows, slack=5)
    found = find_order(recording)
    assert found.status == "unsat"
    assert "the stamps contradict the synchronisation" in found.why
    assert "thread 1" in found.why
    assert "thread 2" in found.why
    assert find_order(recording, timestamps=False).status == "sat"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_read_that_nobody_wrote_is_counted_and_named(engine):
    recording = workers([write(X, 1), read(X, 1)], [read(X, 77, site=3), read(X, 77)], before=ZERO)
    solution = solve(trace_of(recording), engine=engine)
    assert solution.status == "sat"
    assert solution.external == ("8 bytes of memory without a name, first seen by thread 0.2 (bug.c:30)",)
    assert not solve(trace_of(workers([write(X, 1)], [read(X, 1)]))).external


def test_a_log_that_could_not_grow():
    trace = trace_of(workers([write(X, 1)]))
    threads = tuple(
        type(t)(**{f: getattr(t, f) for f in t.__struct_fields__} | {"lost": t.number == 1}) for t in trace.threads
    )
    lossy = type(trace)(trace.path, trace.meta, threads, trace.events, trace.sites, trace.system_sites, trace.modules)
    solution = solve(lossy)
    assert solution.status == "unsupported"
    assert "the log of thread 0.1 could not grow" in solution.why


@pytest.mark.parametrize("engine", ENGINES)
def test_time_is_up(engine):
    found = find_order(simulated(0, "increments", 4, 40)[1], timestamps=False, timeout_s=0.0, engine=engine)
    assert found.status in ("timeout", "sat")
    if engine == "z3":
        assert found.status == "timeout"
        assert found.why.endswith("within 0 s")


def test_nothing_leaves_unchecked(monkeypatch):
    """A wrong order would be an internal error, not a schedule."""
    recording = workers([write(X, 1), write(X, 2)], [read(X, 2)], before=ZERO)
    monkeypatch.setattr(module, "steps_of", lambda problem, order: steps_of(problem, order)[::-1])
    solution = solve(trace_of(recording))
    assert solution.status == "unsupported"
    assert solution.schedule is None
    assert "internal error" in solution.why


def test_one_wrong_value_is_noticed():
    """A lock that was found busy: another's section explains that, but not a third call that found it busy, too."""
    busy = [call(Kind.MUTEX_TRYLOCK, LOCK, 16)]
    assert find_order(workers([LOCKED, UNLOCKED], busy)).status == "sat"
    for engine in ENGINES:
        found = find_order(workers(busy, busy), engine=engine)
        assert found.status == "unsat", found.why
        assert "the result of MUTEX_TRYLOCK (thread" in found.why


def test_a_routine_whose_end_was_not_recorded_had_ended_for_who_returned_from_it():
    _, recording = simulated(59, "crash", 4)  # a crash between the end of a pthread_once routine and its stamp
    assert find_order(recording).status == "sat"


def test_a_cancelled_wait_released_its_mutex():
    recording = workers(
        [
            call(Kind.MUTEX_LOCK, LOCK) | {"before": 10_110, "after": 10_120},
            call(Kind.COND_WAIT, X, value=125, old=LOCK) | {"before": 10_130, "after": 10_300},
            call(Kind.MUTEX_UNLOCK, LOCK) | {"before": 10_310, "after": 10_320},
        ],
        [call(Kind.MUTEX_LOCK, LOCK) | {"before": 10_150, "after": 10_160}, call(Kind.MUTEX_UNLOCK, LOCK)],
        slack=5,
    )
    found = find_order(recording)
    assert found.status == "sat", found.why


def test_a_creation_that_had_not_returned_made_the_thread_that_began():
    whole = trace_of(workers([write(X, 1)], [read(X, 1)], slack=5))
    main = whole.events[0][:2].copy()
    main[1]["value"], main[1]["after"] = (1 << 64) - 1, 0
    trace = dataclasses.replace(whole, events=(main, *whole.events[1:]))
    solution = solve(trace)
    assert solution.status == "sat", solution.why
    assert [op.value for op in solution.schedule.threads[0].ops if op.kind == Kind.CREATE] == [1, 2]


def test_who_returned_from_a_routine_without_a_recorded_end_did_so_after_all_its_thread_did():
    runner = [call(Kind.ONCE, X) | {"after": 0, "flags": Flag.RAN}, write(Y, 1)]
    recording = threads(runner, [call(Kind.ONCE, X), read(Y, 1)])
    known = partial_order(recording, stamps=False)
    last, returned = len(known.threads[0]) - 1, 0
    assert known.before((0, last), (1, returned))
