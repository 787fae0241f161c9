"""Every hooked call is an event with the result the program got; every way to end leaves a log in order."""

import subprocess

import numpy as np
import pytest
from tests.runtime_support import build, record

from recbulc.recorders.control import Level, ThreadState, thread_names
from recbulc.recorders.events import POISON, Flag, Input, Kind

ECANCELED, ETIMEDOUT, EAGAIN = 125, 110, 11


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="module")
def sync(folder):
    return record(build("sync.c", folder))


@pytest.fixture(scope="module")
def ways(folder):
    return build("ways.c", folder, "-w")


def signed(events, field="value"):
    return events[field].astype(np.int64).tolist()


def test_the_calls_of_the_main_thread(sync):
    kinds = [Kind(kind) for kind in sync.events(0)["kind"]]
    assert kinds[:11] == [
        Kind.THREAD_START,
        Kind.MUTEX_INIT,
        Kind.MUTEX_LOCK,
        Kind.MUTEX_TRYLOCK,
        Kind.MUTEX_UNLOCK,
        Kind.MUTEX_UNLOCK,
        Kind.MUTEX_DESTROY,
        Kind.SEM_INIT,
        Kind.BARRIER_INIT,
        Kind.SEM_TRYWAIT,
        Kind.SEM_WAIT,
    ]
    assert kinds[11:17] == [
        *[Kind.CREATE] * 2,
        Kind.MUTEX_LOCK,
        Kind.COND_WAIT,
        Kind.COND_SIGNAL,
        Kind.COND_BROADCAST,
    ]
    assert kinds[-1] == Kind.EXIT


def test_results_and_objects(sync):
    assert signed(sync.of(0, Kind.MUTEX_INIT)) == [1]  # recursive
    assert signed(sync.of(0, Kind.SEM_TRYWAIT)) == [EAGAIN]
    timed = sync.of(0, Kind.SEM_WAIT)[0]
    assert (timed["value"], timed["flags"]) == (ETIMEDOUT, Flag.TIMED)
    assert signed(sync.of(0, Kind.BARRIER_INIT)) == [3]
    assert signed(sync.of(0, Kind.EXIT)) == [7]
    wait = sync.of(0, Kind.COND_WAIT)[0]
    assert (wait["value"], wait["flags"]) == (ETIMEDOUT, Flag.TIMED)
    assert wait["old"] == sync.of(1, Kind.MUTEX_LOCK)[-1]["object"]  # its mutex
    waits = np.concatenate([sync.of(thread, Kind.BARRIER_WAIT) for thread in range(3)])
    assert sorted(signed(waits)) == [-1, 0, 0]  # one of them is the serial thread
    once = np.concatenate([sync.of(thread, Kind.ONCE) for thread in (1, 2)])
    assert sorted(once["flags"]) == [0, Flag.RAN]


def test_create_and_join_name_threads(sync):
    assert signed(sync.of(0, Kind.CREATE)) == signed(sync.of(0, Kind.JOIN)) == [1, 2]
    threads = sync.result.threads
    assert thread_names(threads["parent"], threads["nth"]) == ["0", "0.1", "0.2"]
    assert list(threads["state"][1:]) == [ThreadState.ENDED] * 2


def test_inputs(sync):
    inputs = sync.of(0, Kind.INPUT)
    assert list(inputs["object"]) == [
        Input.CLOCK_GETTIME,
        Input.GETTIMEOFDAY,
        Input.TIME,
        Input.GETPID,
        Input.RAND,
    ]
    assert inputs["old"][0] == 1  # CLOCK_MONOTONIC
    assert abs(int(inputs["value"][1]) // 1_000_000 - int(inputs["value"][2])) <= 1
    assert inputs["value"][3] == sync.result.threads["tid"][0]


def test_allocations(sync):
    made, freed = sync.of(0, Kind.MALLOC), sync.of(0, Kind.FREE)
    assert list(made["value"]) == [100, 1000]  # realloc makes a new block; what libc allocates for itself is not there
    assert list(freed["object"][:2]) == list(made["object"])
    assert all(freed["value"] >= 16)


def test_a_freed_block_is_poison(ways):
    assert record(ways, "use_after_free").result.stdout == f"{POISON:02x} {POISON:02x}\n".encode()


@pytest.mark.parametrize("way", ["cancel", "many", "destructors", "main_leaves", "fork", "exit_in_thread"])
@pytest.mark.parametrize("level", [Level.SYNC, Level.RW])
def test_output_and_exit_code_are_the_plain_programs(ways, way, level):
    plain = subprocess.run([ways, way], capture_output=True, check=False)
    recorded = record(ways, way, level=level)
    assert (recorded.result.how, recorded.result.code) == ("exit", plain.returncode)
    assert (recorded.result.stdout, recorded.result.stderr) == (plain.stdout, plain.stderr)


def test_cancelled_waits_end(ways):
    recorded = record(ways, "cancel")
    assert recorded.threads == 21
    assert signed(recorded.of(1, Kind.COND_WAIT)) == [ECANCELED]
    assert signed(recorded.of(2, Kind.SEM_WAIT)) == [ECANCELED]
    for thread in range(1, 21):
        assert recorded.events(thread)[-1]["kind"] == Kind.THREAD_END
        assert np.all(recorded.events(thread)["after"] != 0)


def test_a_thread_ends_after_its_destructors(ways):
    kinds = list(record(ways, "destructors").events(1)["kind"])
    assert kinds == [
        Kind.THREAD_START,
        Kind.MALLOC,
        Kind.FREE,
        Kind.MUTEX_LOCK,
        Kind.MUTEX_UNLOCK,
        Kind.THREAD_END,
    ]


def test_children_record_nothing(ways):
    recorded = record(ways, "fork")
    assert recorded.threads == 1
    assert list(recorded.events(0)["kind"]) == [Kind.THREAD_START, Kind.EXIT]


def test_the_thread_that_ends_the_process_says_so(ways):
    recorded = record(ways, "exit_in_thread")
    assert signed(recorded.of(1, Kind.EXIT)) == [5]
    assert recorded.events(0)[-1]["kind"] == Kind.JOIN
    assert recorded.events(0)[-1]["after"] == 0


@pytest.mark.parametrize(
    ("way", "signal", "thread", "address"),
    [
        ("crash", 11, 1, 0x10),
        ("overflow", 11, 0, None),
        ("abort", 6, 0, 0),
        ("raise", 8, 0, 0),
        ("trap", 5, 0, 0),
    ],
)
def test_fatal_signals_are_events_and_still_fatal(ways, way, signal, thread, address):
    recorded = record(ways, way)
    assert (recorded.result.how, recorded.result.code) == ("signal", signal)
    last = recorded.events(thread)[-1]
    assert (last["kind"], last["value"]) == (Kind.SIGNAL, signal)
    assert address is None or last["object"] == address


def test_a_deadlock_shows_who_is_blocked_at_what(ways):
    recorded = record(ways, "deadlock")
    assert recorded.result.how == "deadlock"
    assert [(b.thread, b.kind) for b in recorded.result.blocked] == [(0, Kind.MUTEX_LOCK), (1, Kind.SEM_WAIT)]
    assert recorded.result.blocked[0].object == recorded.of(1, Kind.MUTEX_LOCK)[0]["object"]


def test_exceptions_call_once_and_thread_locals(folder):
    program = build("exceptions.cpp", folder)
    plain = subprocess.run([program], capture_output=True, check=False)
    recorded = record(program)
    assert recorded.result.stdout == plain.stdout
    once = np.concatenate([recorded.of(thread, Kind.ONCE) for thread in range(1, 5)])
    assert np.count_nonzero(once["after"] == 0) == 2  # left by an exception
    assert np.count_nonzero(once["flags"] & Flag.RAN) == 1
    for thread in range(1, 5):
        wait = recorded.of(thread, Kind.COND_WAIT)[0]
        assert (wait["value"], wait["flags"]) == (ETIMEDOUT, Flag.TIMED)


def test_c11_threads_are_posix_threads_under_other_names(folder):
    program = build("c11.c", folder)
    plain = subprocess.run([program], capture_output=True, check=False)
    run = record(program)
    assert run.result.stdout == plain.stdout == b"counter 3, once 1\n"
    assert (run.result.code, plain.returncode) == (3, 3)
    assert run.threads == 4
    kinds = [Kind(kind) for kind in run.events(0)["kind"] if kind != Kind.MALLOC]
    assert kinds == [
        Kind.THREAD_START,
        *[Kind.MUTEX_INIT] * 2,
        *[Kind.MUTEX_LOCK] * 2,
        *[Kind.MUTEX_UNLOCK] * 2,
        Kind.MUTEX_DESTROY,
        *[Kind.CREATE] * 3,
        Kind.DETACH,
        Kind.MUTEX_LOCK,
        Kind.MUTEX_TRYLOCK,
        Kind.COND_WAIT,
        Kind.COND_SIGNAL,
        Kind.COND_BROADCAST,
        Kind.MUTEX_UNLOCK,
        *[Kind.JOIN] * 2,
        Kind.MUTEX_DESTROY,
        Kind.EXIT,
    ]
    assert signed(run.of(0, Kind.MUTEX_INIT)) == [0, 1]
    for worker in (1, 2):
        assert Kind.ONCE in run.events(worker)["kind"]
        assert run.events(worker)["kind"][-1] == Kind.THREAD_END
