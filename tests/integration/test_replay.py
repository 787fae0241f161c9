"""Schedules written by hand, enforced on real programs: every kind of call, and what cannot be followed."""

import errno
import os
import random
import signal
import subprocess
from pathlib import Path

import msgspec
import pytest

from recbulc.errors import InputError
from recbulc.recorders.events import Flag, Kind
from recbulc.recorders.runner import Launch
from recbulc.replay.divergence import Reason
from recbulc.replay.rebuild import rebuilt
from recbulc.replay.replay import replay
from recbulc.schedule import Op, Part, Schedule, Site, ThreadSchedule, Verdict, build_id_of

PROGRAMS = Path(__file__).parents[1] / "programs" / "replay"
TIMES = 10
BARRIER_SERIAL = -1


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """calls.c, plain: its calls are hooked without any site."""
    program = tmp_path_factory.mktemp("calls") / "calls"
    subprocess.run(["cc", "-g", "-O1", "-pthread", PROGRAMS / "calls.c", "-o", program], check=True)
    return program


def op(name, count=0, after=(), **more):
    return Op(Kind[name], -1, count, waits=tuple(after), **more)


def schedule(program, scenario, one, two, verdict, joins=2):
    """Of main, which creates and joins threads 1 and 2, and their lists; `joins` is how many of them complete."""
    main = [op("BARRIER_INIT"), op("SEM_INIT"), op("CREATE", value=1), op("CREATE", 1, value=2)]
    main += [op("JOIN", n, value=n + 1) for n in range(joins)]
    if verdict.how in {"exit", "passed"}:
        main.append(op("EXIT", value=verdict.code))
    elif verdict.how == "deadlock":
        main.append(op("JOIN", joins, value=joins + 1, part=Part.BLOCKED))
    threads = (ThreadSchedule("0", tuple(main)), ThreadSchedule("0.1", tuple(one)), ThreadSchedule("0.2", tuple(two)))
    return Schedule(
        program=str(program),
        build_id=build_id_of(program),
        argv=(str(program), scenario),
        env=dict(os.environ),
        cwd=str(program.parent),
        threads=threads,
        sites=(),
        verdict=verdict,
        timeout_s=10.0,
    )


def exits(code):
    return Verdict("exit", code, ("exit",), thread="0")


PASSES = Verdict("passed", 0, ("exit", "signal", "deadlock"), thread="0")


def locks(after=()):
    return [op("MUTEX_LOCK", after=after), op("MUTEX_UNLOCK")]


def waits(begin_after=(), end_after=(), **more):
    """A wait on the condition; its two halves."""
    return [
        op("COND_WAIT", part=Part.BEGIN, after=begin_after, **more),
        op("COND_WAIT", part=Part.END, after=end_after, **more),
    ]


SIGNALS = [op("MUTEX_LOCK", after=[(1, 2)]), op("COND_SIGNAL"), op("MUTEX_UNLOCK")]
SCENARIOS = {
    "the first locks first": ("lock", locks(), locks([(1, 2)]), exits(1)),
    "the second locks first": ("lock", locks([(2, 2)]), locks(), exits(2)),
    "woken": ("wake", [op("MUTEX_LOCK"), *waits(end_after=[(2, 3)]), op("MUTEX_UNLOCK")], SIGNALS, exits(1)),
    "timed out": (
        "time_out",
        [op("MUTEX_LOCK"), *waits(value=errno.ETIMEDOUT, flags=Flag.TIMED), op("MUTEX_UNLOCK")],
        [],
        exits(1),
    ),
    "busy": ("try", [op("MUTEX_TRYLOCK", value=errno.EBUSY)], [], exits(1)),
    "the first is serial": (
        "meet",
        [
            op("BARRIER_WAIT", part=Part.BEGIN),
            op("BARRIER_WAIT", part=Part.END, after=[(2, 1)], value=BARRIER_SERIAL),
        ],
        [op("BARRIER_WAIT", part=Part.BEGIN), op("BARRIER_WAIT", part=Part.END, after=[(1, 1)])],
        exits(1),
    ),
    "the second runs the routine": (
        "once",
        [op("ONCE", after=[(2, 2)])],
        [op("ONCE", part=Part.BEGIN, flags=Flag.RAN), op("ONCE", part=Part.END, flags=Flag.RAN)],
        exits(2),
    ),
    "the first runs the routine": (
        "once",
        [op("ONCE", part=Part.BEGIN, flags=Flag.RAN), op("ONCE", part=Part.END, flags=Flag.RAN)],
        [op("ONCE", after=[(1, 2)])],
        exits(1),
    ),
    "posted": ("post", [op("SEM_WAIT", after=[(2, 1)]), op("SEM_POST")], [op("SEM_POST")], exits(2)),
    "the recorded time": ("tell_time", [op("INPUT", value=1234567890)], [], exits(1)),
    "two locks": (
        "deadlock",
        [op("MUTEX_LOCK"), op("MUTEX_LOCK", 1, part=Part.BLOCKED)],
        [op("MUTEX_LOCK"), op("MUTEX_LOCK", 1, part=Part.BLOCKED)],
        Verdict(
            "deadlock",
            fail_if=("deadlock",),
            blocked=(("0", "JOIN", -1), ("0.1", "MUTEX_LOCK", -1), ("0.2", "MUTEX_LOCK", -1)),
        ),
    ),
    "a lost signal": (
        "lose",
        [op("MUTEX_LOCK", after=[(2, 1)]), op("COND_WAIT", part=Part.BLOCKED)],
        [op("COND_SIGNAL")],
        Verdict("deadlock", fail_if=("deadlock",), blocked=(("0", "JOIN", -1), ("0.1", "COND_WAIT", -1))),
    ),
    "aborted": (
        "crash",
        [op("MUTEX_LOCK", after=[(2, 2)], part=Part.BLOCKED)],
        [op("MUTEX_LOCK"), op("SIGNAL", value=signal.SIGABRT)],
        Verdict("signal", signal.SIGABRT, ("signal",), thread="0.2"),
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_kind_of_call_follows_the_schedule(calls, name):
    scenario, one, two, verdict = SCENARIOS[name]
    joins = {"deadlock": 0, "signal": 0}.get(verdict.how, 2)
    result = replay(schedule(calls, scenario, one, two, verdict, joins), TIMES)
    assert result.first_divergence is None, result.first_divergence.message
    assert result.failed == result.runs == TIMES
    assert result.verdict == "failed"


PASSING = {
    "nobody aborts": ("crash", locks(), locks([(1, 2)])),
    "one after the other": (
        "deadlock",
        [op("MUTEX_LOCK"), op("MUTEX_LOCK", 1), op("MUTEX_UNLOCK"), op("MUTEX_UNLOCK", 1)],
        [op("MUTEX_LOCK", after=[(1, 4)]), op("MUTEX_LOCK", 1), op("MUTEX_UNLOCK"), op("MUTEX_UNLOCK", 1)],
    ),
    "the signal finds its waiter": (
        "lose",
        [op("MUTEX_LOCK"), *waits(end_after=[(2, 1)]), op("MUTEX_UNLOCK")],
        [op("COND_SIGNAL", after=[(1, 2)])],
    ),
}


@pytest.mark.parametrize("name", PASSING)
def test_a_passing_order_never_fails(calls, name):
    scenario, one, two = PASSING[name]
    verdict = exits(1) if scenario == "crash" else PASSES  # the exit code of `crash` is who came first
    verdict = msgspec.structs.replace(verdict, how="passed", fail_if=("signal", "deadlock", "timeout"))
    result = replay(schedule(calls, scenario, one, two, verdict), TIMES)
    assert (result.failed, result.diverged, result.verdict) == (0, 0, "passed"), result.first_divergence


IMPOSSIBLE = {
    "a circle": (
        locks([(2, 2)]),
        locks([(1, 1)]),
        Reason.STILL,
        "0.1",
        0,
        "MUTEX_LOCK, call 1",
        "operation 1 of thread",
    ),
    "too many": ([*locks(), op("MUTEX_LOCK", 1)], locks(), Reason.ENDED, "0.1", 2, "MUTEX_LOCK, call 2", "THREAD_END"),
    "other call": (
        [op("MUTEX_UNLOCK"), op("MUTEX_LOCK")],
        locks(),
        Reason.CALL,
        "0.1",
        0,
        "MUTEX_UNLOCK, call 1",
        "MUTEX_LOCK, call 1",
    ),
    "inside the other's lock": (
        [op("MUTEX_LOCK"), op("MUTEX_UNLOCK", after=[(2, 1)])],
        [op("MUTEX_LOCK", after=[(1, 1)]), op("MUTEX_UNLOCK")],
        Reason.STILL,
        "0.2",
        0,
        "MUTEX_LOCK, call 1",
        "had not come",
    ),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_an_impossible_schedule_names_its_divergence(calls, name):
    one, two, reason, thread, position, expected, found = IMPOSSIBLE[name]
    result = replay(schedule(calls, "lock", one, two, exits(1)), 1)
    assert (result.failed, result.diverged, result.verdict) == (0, 1, "diverged")
    divergence = result.first_divergence
    assert (divergence.reason, divergence.thread, divergence.position) == (reason, thread, position)
    assert divergence.expected == expected
    assert found in divergence.found
    for part in (thread, expected, divergence.found):
        assert part in divergence.message


def test_a_deadlock_that_does_not_come_is_no_failure(calls):
    """The schedule says that both block for good, but lets the second begin only when the first is through."""
    one = [op("MUTEX_LOCK"), op("MUTEX_LOCK", 1), op("MUTEX_UNLOCK"), op("MUTEX_UNLOCK", 1)]
    two = [op("MUTEX_LOCK", after=[(1, 4)]), op("MUTEX_LOCK", 1, part=Part.BLOCKED)]
    verdict = Verdict("deadlock", fail_if=("deadlock",), blocked=(("0", "JOIN", -1), ("0.2", "MUTEX_LOCK", -1)))
    result = replay(schedule(calls, "deadlock", one, two, verdict, joins=1), 1)
    assert result.failed == 0
    assert result.first_divergence.reason == Reason.UNBLOCKED
    assert result.verdict == "passed"


# ------------------------------------------------------------------------------------------------------------ accesses

COUNT_SITES = (
    Site(1, "BEFORE_READ", "worker", "count.c", 19, 21, 0),
    Site(2, "BEFORE_WRITE", "worker", "count.c", 20, 9, 0),
    Site(3, "BEFORE_READ", "main", "count.c", 38, 12, 0),
)
FAULT_SITES = (
    Site(1, "BEFORE_READ", "worker", "fault.c", 38, 10, 0),
    Site(2, "BEFORE_WRITE", "worker", "fault.c", 41, 9, 0),
    Site(4, "BEFORE_WRITE", "main", "fault.c", 54, 5, 0),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("accesses")


@pytest.fixture(scope="module")
def count(folder):
    return built("count.c", folder / "count")


@pytest.fixture(scope="module")
def fault(folder):
    return built("fault.c", folder / "fault")


def built(name, program, *flags):
    """A program whose sites are written by hand."""
    include = [f"-I{PROGRAMS.parent / 'runtime'}", f"-I{PROGRAMS.parents[2] / 'recorders/csrc'}"]
    command = ["cc", "-g", "-O1", "-mno-red-zone", "-pthread", *include, *flags, PROGRAMS / name, "-o", program]
    subprocess.run(command, check=True)
    return program


def interleaved(program, nthreads, rounds, seed, stop=None):
    """A random total order of all accesses to the counter, or of the first `stop`, and what must come out of it."""
    draw = random.Random(seed)
    main = [op("CREATE", n, value=n + 1) for n in range(nthreads)]
    lists = [main, *([] for _ in range(nthreads))]
    seen = [0] * (nthreads + 1)
    counter = 0
    last = None
    for _ in range(2 * rounds * nthreads if stop is None else stop):
        thread = draw.choice([n for n in range(1, nthreads + 1) if len(lists[n]) < 2 * rounds])
        after = ((last, len(lists[last])),) if last not in {None, thread} else ()
        nth, writes = divmod(len(lists[thread]), 2)
        if writes:
            counter = seen[thread] + 1
        else:
            seen[thread] = counter
        lists[thread].append(Op(Kind.WRITE if writes else Kind.READ, writes, nth, after))
        last = thread
    if stop is None:
        main += [op("JOIN", n, value=n + 1) for n in range(nthreads)]
    main += [Op(Kind.READ, 2, 0, ((last, len(lists[last])),)), op("EXIT")]
    told = f"regex:^counter {counter}, unlisted {int(stop is None)}$"
    return Schedule(
        program=str(program),
        build_id=build_id_of(program),
        argv=("count", str(nthreads), str(rounds), *(["leave"] if stop is not None else [])),
        env={},
        cwd="/",
        threads=tuple(ThreadSchedule(f"0.{n}" if n else "0", tuple(ops)) for n, ops in enumerate(lists)),
        sites=COUNT_SITES,
        verdict=Verdict("regex", 0, (told,), thread="0"),
        timeout_s=10.0,
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("nthreads", "rounds", "stop"), [(2, 100, None), (8, 20, None), (2, 100, 150), (5, 20, 90)])
def test_any_order_of_accesses_gives_its_own_result(count, nthreads, rounds, stop, seed):
    """With `stop` the lists end early: nobody may write any more before main has read, at whatever site."""
    result = replay(interleaved(count, nthreads, rounds, seed, stop), TIMES)
    assert result.first_divergence is None, result.first_divergence.message
    assert result.failed == TIMES, result.verdicts[0]


def test_accesses_out_of_order_are_named_by_their_place(count):
    made = interleaved(count, 2, 3, 0)
    ops = list(made.threads[1].ops)
    ops[2], ops[3] = ops[3], ops[2]
    threads = (made.threads[0], ThreadSchedule("0.1", tuple(ops)), made.threads[2])
    result = replay(msgspec.structs.replace(made, threads=threads), 1)
    assert result.first_divergence.reason == Reason.ACCESS
    assert result.first_divergence.message.startswith(
        "thread 0.1, operation 2: expected WRITE at worker (count.c:20), execution 2, "
        "found READ at worker (count.c:19), execution 2"
    )


def faulting(program):
    """The worker looks first, and dies of it."""
    worker = (Op(Kind.READ, 0, 0), Op(Kind.WRITE, 1, 0, part=Part.BLOCKED), op("SIGNAL", value=signal.SIGSEGV))
    return Schedule(
        program=str(program),
        build_id=build_id_of(program),
        argv=("fault",),
        env={},
        cwd="/",
        threads=(ThreadSchedule("0", (op("CREATE", value=1),)), ThreadSchedule("0.1", worker)),
        sites=FAULT_SITES,
        verdict=Verdict("signal", signal.SIGSEGV, ("signal",), "SIGSEGV", "0.1", 1),
        timeout_s=10.0,
    )


def test_a_fault_comes_again(fault):
    result = replay(faulting(fault), TIMES)
    assert result.first_divergence is None, result.first_divergence.message
    assert (result.failed, result.verdict) == (TIMES, "failed")


def test_the_passing_order_of_the_same_accesses_does_not_fault(fault):
    made = faulting(fault)
    main = (op("CREATE", value=1), Op(Kind.WRITE, 2, 0), op("JOIN", value=1), op("EXIT"))
    threads = (ThreadSchedule("0", main), ThreadSchedule("0.1", (Op(Kind.READ, 0, 0, ((0, 2),)),)))
    passing = msgspec.structs.replace(made, threads=threads, verdict=Verdict("passed", 0, ("signal", "deadlock")))
    result = replay(passing, TIMES)
    assert (result.failed, result.diverged, result.verdict) == (0, 0, "passed")


@pytest.mark.parametrize(
    ("flag", "verdict", "reason"),
    [
        ("LOCKED", "failed", None),
        ("FIXED", "unreachable", Reason.ENDED),
        ("SAFE", "passed", Reason.UNBLOCKED),
    ],
)
def test_a_rebuilt_program_fails_passes_or_cannot_follow(fault, folder, flag, verdict, reason):
    made = faulting(fault)
    program = built("fault.c", folder / flag, f"-D{flag}")
    launch = Launch(program, ("fault",), {}, Path("/"))
    result = replay(made, TIMES, rebuilt=rebuilt(made, launch, FAULT_SITES))
    assert result.verdict == verdict
    assert result.failed == (TIMES if verdict == "failed" else 0)
    assert (result.first_divergence and result.first_divergence.reason) == reason


def test_another_build_needs_to_be_named(fault, folder):
    made = faulting(fault)
    other = built("fault.c", folder / "other", "-DFIXED")
    with pytest.raises(InputError, match="not the build that was recorded") as caught:
        replay(msgspec.structs.replace(made, program=str(other)), 1)
    assert f"-- {other}" in caught.value.remedy
