"""One run of a real program, to each of its ends."""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.runtime_support import build, launch, setting, wait_until
from tests.support import X, Y

from recbulc.errors import InputError
from recbulc.recorders.control import ControlPage, Mode, Setting
from recbulc.recorders.events import Kind
from recbulc.recorders.runner import Runner, find_program


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    return build("runner.c", tmp_path_factory.mktemp("runner"))


@pytest.fixture
def run(program, tmp_path):
    def go(*arguments, timeout_s=20.0, stdin=b"", on_output=None):
        page = ControlPage.create(tmp_path / "control", setting(tmp_path / "trace"))
        with Runner(launch(program, *arguments, stdin=stdin)) as runner:
            return runner.run(page, timeout_s=timeout_s, on_output=on_output)

    return go


def test_exit_codes(run):
    assert [(result.how, result.code) for result in map(run, ["exit"] * 3, ["0", "1", "77"])] == [
        ("exit", 0),
        ("exit", 1),
        ("exit", 77),
    ]


def test_signals(run):
    result = run("abort")
    assert (result.how, result.code) == ("signal", signal.SIGABRT)


def test_a_deadlock_is_seen_long_before_the_time_out(run):
    began = time.monotonic()
    result = run("deadlock", timeout_s=60)
    assert time.monotonic() - began < 30
    assert result.how == "deadlock"
    assert [(thread.name, thread.kind) for thread in result.blocked] == [
        ("0", Kind.MUTEX_LOCK),
        ("0.1", Kind.MUTEX_LOCK),
    ]
    assert len({thread.object for thread in result.blocked}) == 2


def test_a_lost_signal_is_a_deadlock(run):
    result = run("lost_signal", timeout_s=60)
    assert [(thread.name, thread.kind_name) for thread in result.blocked] == [("0", "JOIN"), ("0.1", "COND_WAIT")]


def test_a_first_thread_that_ended_hides_no_deadlock(run):
    result = run("first_ends", timeout_s=60)
    assert [thread.name for thread in result.blocked] == ["0.1"]


def test_what_ends_by_itself_is_no_deadlock(run):
    assert run("timed").how == "exit"


def test_a_child_that_may_wake_it_makes_it_no_deadlock(run):
    assert run("child", timeout_s=0.4).how == "timeout"


def test_a_time_out_is_one_though_threads_run(run):
    result = run("spins", timeout_s=0.3)
    assert result.how == "timeout"
    assert result.blocked == ()
    assert result.seconds >= 0.3


def test_both_streams_are_captured_and_passed_on(run):
    passed = []
    result = run("speaks", on_output=lambda stream, chunk: passed.append((stream, chunk)))
    assert (result.stdout, result.stderr) == (b"out\n", b"err\n")
    assert sorted(passed) == [(1, b"out\n"), (2, b"err\n")]


def test_more_output_than_a_pipe_holds(run):
    assert run("floods").stdout.count(b"\n") == 64 * 1024


def test_every_run_reads_all_of_stdin(program, tmp_path):
    content = b"one\ntwo\n" * 10_000
    with Runner(launch(program, "echo", stdin=content)) as runner:
        for _ in range(3):
            page = ControlPage.create(tmp_path / "control", setting(tmp_path / "trace"))
            assert runner.run(page, timeout_s=20).stdout == content


def test_a_process_that_is_left_behind_does_not_hold_us(run):
    began = time.monotonic()
    result = run("leaves", timeout_s=60)
    assert time.monotonic() - began < 30
    left = int(result.stdout)
    wait_until(lambda: not Path(f"/proc/{left}").exists())


def test_addresses_are_the_same_in_every_run_and_ours_are_not_touched(run, program):
    first, second = run("where").stdout, run("where").stdout
    assert first == second
    assert first.split()[2:] == [os.fsencode(program.parent), b"1"]
    personality = Path("/proc/self/personality").read_text()
    assert int(personality, 16) & 0x0040000 == 0


def test_an_environment_of_its_own(program, tmp_path):
    """LD_PRELOAD of the user stays, behind ours."""
    start = launch(program, "speaks")
    start = replace(start, env=start.env | {"LD_PRELOAD": "libm.so.6"})
    page = ControlPage.create(tmp_path / "control", Setting(Mode.RECORD, cores=(X, Y), directory=tmp_path))
    with Runner(start) as runner:
        assert runner.run(page, timeout_s=20).stderr == b"err\n"


def test_programs_are_found_as_a_shell_finds_them(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    for place, mode in (("bin/tool", 0o755), ("here", 0o755), ("plain", 0o644)):
        (tmp_path / place).write_text("")
        (tmp_path / place).chmod(mode)
    assert find_program("tool", tmp_path) == tmp_path / "bin/tool"
    assert find_program("./here", tmp_path) == tmp_path / "here"
    for name, message in (
        ("./plain", "not executable"),
        ("./nowhere", "no program"),
        ("./bin", "is a directory"),
        ("here", "no program here"),
    ):
        with pytest.raises(InputError, match=message):
            find_program(name, tmp_path)


def test_what_cannot_be_run_is_said(tmp_path):
    page = ControlPage.create(tmp_path / "control", setting(tmp_path / "trace"))
    broken = tmp_path / "broken"
    broken.write_text("no program")
    broken.chmod(0o755)
    with Runner(launch(broken)) as runner, pytest.raises(InputError, match="cannot run"):
        runner.run(page, timeout_s=1)
