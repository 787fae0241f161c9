"""`recbulc record` and `recbulc trace` as a user runs them, on programs of other compilers: the SYNC level."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.runtime_support import ROOT, build, wait_until
from tests.support import X, Y, recbulc

from recbulc.recorders.events import Kind
from recbulc.recorders.trace import Trace

SYNC = ("--level", "SYNC")


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("programs")
    runner = build("runner.c", folder)
    locks = folder / "two_locks"
    subprocess.run(
        ["cc", "-O1", "-pthread", str(ROOT / "tests/programs/bugs/two_locks.c"), "-o", str(locks)], check=True
    )
    return {"runner": runner, "two_locks": locks, "works": (str(runner), "works")}


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    """One clock model for all of these."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def record(cache, tmp_path):
    """On one core where nothing is said: without clocks to measure."""

    def go(*arguments: str, **how):
        how = {"cores": {X}} | how
        out = tmp_path / "trace"
        done = recbulc("record", "--json", "--out", str(out), *arguments, cache=cache, **how)
        document = json.loads(done.stdout) if done.stdout else {}
        assert done.stdout.count("\n") == (1 if document else 0)
        return done, document

    return go


def test_the_document_has_the_keys_of_the_contract(record, programs, tmp_path):
    done, found = record(*SYNC, "--seed", "5", "--", *programs["works"], cores={X, Y})
    assert done.returncode == 0, done.stderr
    assert found["trace"] == str(tmp_path / "trace")
    assert found["failed"] is False
    assert found["verdict"]["how"] == "passed"
    assert (found["runs"], found["seed"], found["strategy"], found["lost"]) == (1, 5, "plain", 0)
    assert found["clocks"]["modified"] is False
    for when in ("before", "after"):
        assert found["clocks"][when][0]["cores"] == [X, Y]
    trace = Trace.load(tmp_path / "trace")
    assert found["events"] == sum(map(len, trace.events)) > 0
    assert found["threads"] == len(trace.threads) > 1
    assert trace.meta.argv == tuple(programs["works"])
    assert trace.meta.complete
    assert list(tmp_path.iterdir()) == [tmp_path / "trace"]


def test_intervals_hold_what_all_three_measured(record, programs, tmp_path):
    record(*SYNC, "--", *programs["works"], cores={X, Y})
    clocks = Trace.load(tmp_path / "trace").meta.clocks
    (pair,) = clocks.pairs
    for measured in (*clocks.model, *clocks.before, *clocks.after):
        assert pair.sound.lo <= measured.sound.lo <= measured.sound.hi <= pair.sound.hi
        assert pair.confident.lo <= measured.confident.lo <= measured.confident.hi <= pair.confident.hi


def test_the_programs_output_is_passed_on(programs, cache, tmp_path):
    out = ("--out", str(tmp_path / "trace"), "-q")
    plain = recbulc("record", *SYNC, *out, "--", str(programs["runner"]), "speaks", cache=cache, cores={X})
    assert (plain.stdout, plain.stderr) == ("out\n", "err\n")
    as_json = recbulc("record", *SYNC, *out, "--json", "--", str(programs["runner"]), "speaks", cache=cache, cores={X})
    assert json.loads(as_json.stdout)["runs"] == 1
    assert sorted(as_json.stderr.split()) == ["err", "out"]


def test_a_failing_run_is_recorded_all_the_same(record, programs, tmp_path):
    done, found = record(*SYNC, "--", str(programs["runner"]), "exit", "3")
    assert done.returncode == 0
    assert found["failed"] is True
    assert (found["verdict"]["how"], found["verdict"]["code"], found["verdict"]["thread"]) == ("exit", 3, "0")
    done, found = record(*SYNC, "--", str(programs["runner"]), "abort")
    assert (found["verdict"]["how"], found["verdict"]["detail"]) == ("signal", "SIGABRT")
    assert Trace.load(tmp_path / "trace").events[0]["kind"][-1] == Kind.SIGNAL


def test_until_fail_finds_a_rare_deadlock_and_says_where_threads_wait(record, programs):
    done, found = record(
        *SYNC, "--until-fail", "3000", "--provoke", "--seed", "1", "--", str(programs["two_locks"]), cores={X, Y}
    )
    assert done.returncode == 0, done.stderr
    assert found["verdict"]["how"] == "deadlock"
    assert {(waiting["thread"], waiting["kind"]) for waiting in found["verdict"]["blocked"]} == {
        ("0", "JOIN"),
        ("0.1", "MUTEX_LOCK"),
        ("0.2", "MUTEX_LOCK"),
    }
    assert found["strategy"] in {"plain", "access", "sync", "start"}
    assert "thread 0.1 waits in MUTEX_LOCK" in done.stderr


def test_what_never_fails_exits_with_1_and_keeps_the_last_run(record, programs, tmp_path):
    done, found = record(*SYNC, "--until-fail", "5", "--provoke", "--", *programs["works"])
    assert done.returncode == 1
    assert (found["failed"], found["runs"]) == (False, 5)
    assert Trace.load(tmp_path / "trace").meta.run == 5


def test_fail_if_decides(record, programs):
    _, found = record(*SYNC, "--fail-if", "regex:^out$", "--", str(programs["runner"]), "speaks")
    assert (found["verdict"]["how"], found["verdict"]["detail"]) == ("regex", "out")
    _, found = record(*SYNC, "--fail-if", "signal", "--", str(programs["runner"]), "exit", "3")
    assert found["failed"] is False
    _, found = record(*SYNC, "--timeout", "300ms", "--", str(programs["runner"]), "spins")
    assert found["verdict"]["how"] == "timeout"


def test_standard_input_is_kept_and_given_to_every_run(programs, cache, tmp_path):
    (tmp_path / "input").write_text("line\n")
    arguments = ("--out", str(tmp_path / "trace"), "--until-fail", "3", "--fail-if", "regex:line", "--stdin")
    done = recbulc(
        "record",
        *SYNC,
        "-q",
        *arguments,
        str(tmp_path / "input"),
        "--",
        str(programs["runner"]),
        "echo",
        cache=cache,
        cores={X},
    )
    assert done.returncode == 0
    assert done.stdout == "line\n"
    assert Trace.load(tmp_path / "trace").meta.stdin == b"line\n"


def test_an_injected_skew_is_measured_and_put_into_the_stamps(record, programs, tmp_path):
    clocks = {"skews": {str(Y): {"offset_ticks": 1_000_000}}}
    _, found = record(*SYNC, "--", *programs["works"], clocks=clocks, cores={X, Y})
    lo, hi = found["clocks"]["before"][0]["sound"]
    assert lo < 1_000_000 < hi
    assert found["clocks"]["modified"] is False
    trace = Trace.load(tmp_path / "trace")
    assert trace.interval(X, Y)[0] < 1_000_000 < trace.interval(X, Y)[1]
    raw = int.from_bytes((tmp_path / "trace/1.events").read_bytes()[:8], "little")
    assert int(trace.events[1]["before"][0]) == raw + 1_000_000


def test_nothing_but_an_earlier_trace_is_replaced(record, programs, tmp_path):
    for _ in range(2):
        assert record(*SYNC, "--", *programs["works"])[0].returncode == 0
    (tmp_path / "trace/meta.json").write_text("{}")
    done, _ = record(*SYNC, "--", *programs["works"])
    assert done.returncode == 2
    assert "is there and is no trace" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--", "./nowhere"], 2, "no program"),
        (["--", "/etc/passwd"], 2, "not executable"),
        (["--"], 2, "no program is named"),
        (["--", "/bin/true"], 2, "--level SYNC"),
        (["--level", "RW", "--", "/bin/true"], 2, "not built by"),
        (["--level", "BB", "--", "/bin/true"], 2, "no level"),
        (["--level", "SYNC", "--fail-if", "luck", "--", "/bin/true"], 2, "no predicate"),
        (["--level", "SYNC", "--timeout", "soon", "--", "/bin/true"], 2, "no duration"),
        (["--level", "SYNC", "--provoke=luck", "--", "/bin/true"], 2, "no strategy"),
        (["--level", "SYNC", "--seed", "-1", "--", "/bin/true"], 2, "the seed -1"),
        (["--level", "SYNC", "--until-fail", "-1", "--", "/bin/true"], 2, "--until-fail -1"),
        (["--level", "SYNC", "--no-pin", "--stamp", "2c", "--", "/bin/true"], 2, "does not tell the core"),
        (["--level", "SYNC", "--stdin", "/nowhere", "--", "/bin/true"], 2, "cannot read /nowhere"),
        (["--level", "SYNC", "--cores", "4000", "--", "/bin/true"], 3, "off-line"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(record, arguments, code, message):
    done, _ = record(*arguments)
    assert done.returncode == code
    assert message in done.stderr.replace("is not a duration", "no duration")
    assert "Traceback" not in done.stderr


def test_a_script_is_no_program(record, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\nexit 0\n")
    script.chmod(0o755)
    done, _ = record(*SYNC, "--", str(script))
    assert done.returncode == 2
    assert "ELF" in done.stderr


def test_a_static_program_is_refused_with_the_reason(record, tmp_path):
    source = tmp_path / "static.c"
    source.write_text("int main(void) { return 0; }\n")
    subprocess.run(["cc", "-static", str(source), "-o", str(tmp_path / "static")], check=True)
    done, _ = record(*SYNC, "--", str(tmp_path / "static"))
    assert done.returncode == 3
    assert "linked statically" in done.stderr


def test_one_core_needs_no_clock_model(programs, tmp_path):
    done = recbulc(
        "record", *SYNC, "--json", "--out", str(tmp_path / "t"), "--", *programs["works"], cores={X}, cache=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["clocks"]["before"] == []
    assert Trace.load(tmp_path / "t").meta.cores == (X,)


def test_ctrl_c_keeps_what_there_is(programs, cache, tmp_path):
    command = [Path(sys.executable).parent / "recbulc", "record", *SYNC, "--out", str(tmp_path / "trace")]
    with subprocess.Popen(
        [*command, "--", str(programs["runner"]), "spins"],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | {"XDG_CACHE_HOME": str(cache)},
        text=True,
    ) as process:
        wait_until(lambda: any(tmp_path.glob(".trace.*/1.events")))
        process.send_signal(signal.SIGINT)
        said = process.communicate()[1]
    assert process.returncode == 130
    assert "interrupted" in said
    trace = Trace.load(tmp_path / "trace")
    assert [thread.end for thread in trace.threads] == ["blocked", "running"]
    assert list(tmp_path.iterdir()) == [tmp_path / "trace"]


def test_a_killed_recbulc_leaves_a_readable_recording(programs, cache, tmp_path):
    command = [Path(sys.executable).parent / "recbulc", "record", *SYNC, "--out", str(tmp_path / "trace")]
    with subprocess.Popen(
        [*command, "--", str(programs["runner"]), "reads"],
        stdin=subprocess.DEVNULL,
        env=os.environ | {"XDG_CACHE_HOME": str(cache)},
    ) as process:
        wait_until(lambda: any(tmp_path.glob(".trace.*/meta.json")))
        wait_until(lambda: any(tmp_path.glob(".trace.*/0.events")) or process.poll() is not None)
        process.kill()
    left = [*tmp_path.glob(".trace.*"), tmp_path / "trace"][0]
    trace = Trace.load(left)
    assert trace.threads[0].name == "0"
    assert trace.meta.argv[1] == "reads"


def test_trace_shows_a_recording(record, programs, tmp_path):
    record(*SYNC, "--", *programs["works"])
    done = recbulc("trace", str(tmp_path / "trace"), "--json", "--limit", "1000000")
    found = json.loads(done.stdout)
    assert found["header"]["level"] == "SYNC"
    trace = Trace.load(tmp_path / "trace")
    assert len(found["events"]) == sum(map(len, trace.events))
    assert [thread["name"] for thread in found["threads"]] == [thread.name for thread in trace.threads]
    locked = [event for event in found["events"] if event["kind"] == "MUTEX_LOCK"]
    assert any(not event["object"].startswith("0x") for event in locked)
    one = json.loads(recbulc("trace", str(tmp_path / "trace"), "--json", "--thread", "0.1").stdout)["events"]
    assert {event["thread"] for event in one} == {"0.1"}
    assert [event["before"] for event in one] == sorted(event["before"] for event in one)
    people = recbulc("trace", str(tmp_path / "trace"), "--limit", "3")
    assert "verdict   passed" in people.stdout
    assert "more events" in people.stderr


def test_trace_refuses_what_it_cannot_show(record, programs, tmp_path):
    done = recbulc("trace", str(tmp_path / "nowhere"))
    assert (done.returncode, "there is no trace" in done.stderr) == (2, True)
    record(*SYNC, "--", *programs["works"])
    done = recbulc("trace", str(tmp_path / "trace"), "--thread", "0.99")
    assert (done.returncode, "no thread 0.99" in done.stderr) == (2, True)
    (tmp_path / "trace/0.events").write_bytes(b"")
    done = recbulc("trace", str(tmp_path / "trace"))
    assert (done.returncode, "is damaged" in done.stderr) == (2, True)
