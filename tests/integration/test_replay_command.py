"""`recbulc replay` as a user runs it."""

import os
import random
import re
import shutil
import signal
import subprocess
from pathlib import Path

import msgspec
import pytest
from tests.chain_support import COMMAND, NAMES, built, chain, damaged, on_one_core, refused, run

from recbulc.recorders.build import run_compiler
from recbulc.replay.rebuild import find_rebuilt
from recbulc.schedule import load_schedule

KEYS = {"runs", "failed", "diverged", "verdict", "first_divergence"}
TIMES = 10
DAMAGES = 300


@pytest.mark.parametrize("name", NAMES)
def test_every_replay_fails_the_recorded_way(name):
    done = run("replay", "--json", "--times", TIMES, chain(name).schedule)
    found = done.document
    assert found.keys() >= KEYS
    assert (found["runs"], found["failed"], found["diverged"]) == (TIMES, TIMES, 0), found["first_divergence"]
    assert (done.code, found["verdict"], found["first_divergence"]) == (0, "failed", None)


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_that_passed_never_fails(name):
    """The negative control: a schedule does not make up a failure."""
    done = run("replay", "--json", "--times", TIMES, chain(name, failing=False).schedule)
    found = done.document
    assert (found["runs"], found["failed"], found["diverged"]) == (TIMES, 0, 0), found["first_divergence"]
    assert (done.code, found["verdict"], found["recorded"]) == (1, "passed", "passed")


@pytest.mark.parametrize("name", NAMES)
def test_the_fixed_twin_never_fails_the_recorded_way(name):
    made = chain(name)
    done = run("replay", "--json", "--times", "2", made.schedule, "--", made.fixed)
    found = done.document
    assert found["failed"] == 0
    assert found["verdict"] in {"passed", "unreachable"}
    assert done.code == 1


def test_a_fix_that_locks_each_access_still_fails(tmp_path):
    """Each is locked now, but not both together: the recorded interleaving goes through the new locks."""
    made = chain("lost_update")
    text = made.bug.path.read_text()
    for line in ("    long before = totals.bytes;", "    totals.bytes = before + bytes;"):
        assert text.count(line) == 1
        text = text.replace(line, f"    pthread_mutex_lock(&totals_lock);\n{line} pthread_mutex_unlock(&totals_lock);")
    (tmp_path / made.bug.path.name).write_text(text)
    program = tmp_path / "half-fixed"
    source = str(tmp_path / made.bug.path.name)
    assert run_compiler([*made.bug.flags, "-g", "-pthread", source, "-o", str(program)], cxx=False) == 0
    done = run("replay", "--json", "--times", TIMES, made.schedule, "--", program)
    assert (done.document["verdict"], done.document["failed"]) == ("failed", TIMES), done.document["first_divergence"]


def test_people_read_what_the_fix_did():
    people = run("replay", chain("lost_update").schedule, "--", chain("lost_update").fixed)
    assert people.code == 1
    assert re.search("^(passed|unreachable): the schedule ", people.out, re.MULTILINE)
    assert "failed 0/1 replays (exit code 1)" in people.out


@pytest.mark.parametrize("name", ["lost_update", "two_locks"])
def test_an_identical_build_fails_again(name, tmp_path):
    made = chain(name)
    again = tmp_path / "again"
    flags = [*made.bug.flags, "-g", "-pthread"]
    assert run_compiler([*flags, str(made.bug.path), "-o", str(again)], cxx=False) == 0
    done = run("replay", "--json", "--times", TIMES, made.schedule, "--", again)
    assert (done.document["failed"], done.document["verdict"]) == (TIMES, "failed"), done.document["first_divergence"]
    assert done.code == 0


def test_in_a_pipe_from_elsewhere_without_the_trace(tmp_path):
    made = chain("lost_update")
    schedule = tmp_path / "copied.schedule"
    shutil.copy(made.schedule, schedule)
    aside = made.trace.rename(tmp_path / "aside")
    try:
        people = subprocess.run(
            [COMMAND, "replay", schedule.name, "--times", "20"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        aside.rename(made.trace)
    assert people.returncode == 0, people.stderr
    assert people.stdout == "failed 20/20 replays (exit code 1), 0 diverged\n"
    assert people.stderr.splitlines() == ["replay ...", *(f"replay: {n}/20" for n in (5, 10, 15, 20))]


def test_the_programs_output_is_seen_once_and_is_not_in_the_way():
    schedule = chain("half_written").schedule
    one = run("replay", schedule)
    assert one.out.endswith("failed 1/1 replays (fix 53,10,34 m), 0 diverged\n") or "failed 1/1" in one.out
    assert "fix 5" in one.out.partition("failed")[0]
    as_json = run("replay", "--json", schedule)
    assert as_json.document["failed"] == 1
    assert "fix 5" in as_json.err
    assert run("replay", "-q", "--times", "2", schedule).err == ""
    assert "fix 5" in run("replay", "-v", "--times", "2", schedule).out


READER = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char line[80];
static void *reads(void *none) { return fgets(line, sizeof line, stdin) ? line : none; }
int main(int argc, char **argv)
{
    pthread_t thread;
    char here[4096];
    const char *set = getenv("CHAIN_SETTING");
    pthread_create(&thread, NULL, reads, NULL);
    pthread_join(thread, NULL);
    printf("%s %s %s %s", argc > 1 ? argv[1] : "none", set ? set : "none", getcwd(here, sizeof here), line);
    return strcmp(line, "said\\n") == 0 ? 7 : 1;
}
"""


def test_arguments_environment_directory_and_input_are_the_recorded_ones(tmp_path, monkeypatch):
    (tmp_path / "reader.c").write_text(READER)
    (tmp_path / "there").mkdir()
    (tmp_path / "input").write_text("said\n")
    assert run_compiler(["-g", "-pthread", str(tmp_path / "reader.c"), "-o", str(tmp_path / "reader")], cxx=False) == 0
    monkeypatch.setenv("CHAIN_SETTING", "as recorded")
    monkeypatch.chdir(tmp_path / "there")
    with on_one_core():
        done = run("record", "-q", "--stdin", "../input", "--out", "../t", "--", "../reader", "an argument")
    assert done.code == 0, done.err
    said = f"an argument as recorded {tmp_path}/there said\n"
    assert done.out == said
    assert run("solve", "-q", "../t").code == 0
    monkeypatch.setenv("CHAIN_SETTING", "another")
    monkeypatch.chdir("/")
    replayed = run("replay", "-q", tmp_path / "t.schedule")
    assert replayed.code == 0, replayed.out
    assert replayed.out == f"{said}failed 1/1 replays (exit code 7), 0 diverged\n"
    (tmp_path / "there").rmdir()
    refused(run("replay", tmp_path / "t.schedule"), 2, "the directory that it was recorded in is gone", "-- PROG")


@pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not here")
@pytest.mark.parametrize(
    ("name", "said"), [("queue_freed", "SIGSEGV"), ("lost_update", "exit_group"), ("two_locks", "SIGINT")]
)
def test_gdb_stops_where_it_fails(name, said):
    done = run("replay", "--json", "--gdb-command", "bt", "--gdb-command", "info threads", chain(name).schedule)
    found = done.document
    assert (done.code, found["failed"], found["verdict"]) == (0, 1, "failed"), found
    assert said in found["gdb"]
    assert "#0 " in found["gdb"]
    assert found.keys() >= KEYS


def test_gdb_is_asked_for_where_there_is_none(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    refused(run("replay", "--gdb-command", "bt", chain("lost_update").schedule), 3, "there is no gdb", "install gdb")


@pytest.fixture
def moved(tmp_path):
    """A schedule whose program is a file of ours."""
    made = load_schedule(chain("lost_update").schedule)
    schedule = msgspec.structs.replace(made, program=str(tmp_path / "program"))
    schedule.save(tmp_path / "s")
    shutil.copy(built("lost_update"), tmp_path / "program")
    return tmp_path / "s"


def test_another_build_must_be_named(moved, tmp_path):
    assert run("replay", "-q", moved).code == 0
    shutil.copy(built("lost_update", fixed=True), tmp_path / "program")
    refused(run("replay", "--json", moved), 2, "is not the build that was recorded", f"-- {tmp_path}/program")
    (tmp_path / "program").unlink()
    refused(run("replay", moved), 2, f"the program that was recorded is gone: {tmp_path}/program", "-- PROG")


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("./nowhere", "there is no program ./nowhere"),
        ("/etc/passwd", "is not executable"),
        ("/etc", "is a directory"),
    ],
)
def test_another_program_that_cannot_be_run(program, said):
    refused(run("replay", chain("lost_update").schedule, "--", program), 2, said)


def test_a_program_without_sites_is_refused_and_another_cannot_follow():
    refused(run("replay", chain("lost_update").schedule, "--", "/bin/true"), 2, "was not built by `recbulc cc`")
    done = run("replay", "--json", chain("lost_update").schedule, "--", built("two_locks"))
    assert (done.code, done.document["verdict"], done.document["runs"]) == (1, "unreachable", 0)
    assert "no such place" in done.document["first_divergence"]["message"]


def test_another_build_gets_the_recorded_arguments_where_none_are_given():
    schedule = msgspec.structs.replace(load_schedule(chain("lost_update").schedule), argv=("./prog", "-n", "two words"))
    program = str(built("lost_update"))
    assert find_rebuilt(schedule, [program]).launch.argv == (program, "-n", "two words")
    assert find_rebuilt(schedule, [program, "other"]).launch.argv == (program, "other")


def test_a_script_is_no_build(tmp_path):
    (tmp_path / "script").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "script").chmod(0o755)
    refused(run("replay", chain("lost_update").schedule, "--", tmp_path / "script"), 2, "is no ELF program")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is no schedule, or is damaged"),
        (b"hello\n", "is no schedule, or is damaged"),
        (b"[1, 2]\n", "is no schedule, or is damaged"),
        (b"\xff\xfe\x00", "is no schedule, or is damaged"),
        (b"[" * 100_000, "is no schedule, or is damaged"),
        (b'{"a": ' * 100_000, "is no schedule, or is damaged"),
        (b"{}\n", "is not a schedule (its format is '')"),
        (b'{"format": "recbulc-trace"}', "is not a schedule (its format is 'recbulc-trace')"),
        (b'{"format": "recbulc-schedule", "version": 99}', "has version 99"),
        (b'{"format": "recbulc-schedule", "version": 1}', "is damaged"),
    ],
)
def test_what_is_no_schedule(tmp_path, content, said):
    (tmp_path / "s").write_bytes(content)
    refused(run("replay", "--json", tmp_path / "s"), 2, said, "recbulc solve")


def test_no_file_and_bad_numbers(tmp_path):
    refused(run("replay", tmp_path / "nowhere"), 2, "cannot read the schedule", "No such file")
    refused(run("replay", tmp_path), 2, "cannot read the schedule", "Is a directory")
    refused(run("replay", "--times", "0", chain("lost_update").schedule), 2, "--times 0")


def test_no_damage_ends_in_a_traceback_or_in_another_replay(tmp_path):
    """What is still accepted says the same (white space)."""
    whole, rng = chain("lost_update").schedule.read_bytes(), random.Random(7)
    before = load_schedule(chain("lost_update").schedule)
    for _ in range(DAMAGES):
        (tmp_path / "s").write_bytes(damaged(whole, rng))
        done = run("replay", "--json", tmp_path / "s")
        if done.code:
            refused(done, 2, "what to do: ")
        else:
            assert load_schedule(tmp_path / "s") == before


def test_ctrl_c_leaves_nobody_behind(tmp_path):
    program = built("lost_update")
    with subprocess.Popen(
        [COMMAND, "replay", "--times", "1000000", chain("lost_update").schedule],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        text=True,
    ) as process:
        assert process.stderr.readline() == "replay ...\n"
        while not processes_of(program):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        said, shown = process.stderr.read(), process.stdout.read()
    assert process.returncode == 130
    rate, interrupted = said.splitlines()
    assert rate.startswith("failed ")
    assert rate.endswith(" replays up to now")
    assert (interrupted, shown) == ("recbulc: interrupted", "")
    assert processes_of(program) == []
    assert list(tmp_path.iterdir()) == []


def processes_of(program: Path) -> list[str]:
    """Who runs it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "exe").readlink() == program:
                found.append(process.name)
        except OSError:
            continue
    return found


SELF_KILL = """\
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
static int ready;
static void *work(void *argument) { ready = 1; return argument; }
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    if (!ready || kill(getpid(), 0))
        return 9;
    kill(getpid(), SIGTERM);
    for (;;)
        pause();
}
"""


def test_a_signal_to_oneself_reaches_oneself_in_a_replay(tmp_path):
    """The program is told the recorded number of its process, which is nobody's or a stranger's by then."""
    (tmp_path / "self.c").write_text(SELF_KILL)
    program = tmp_path / "self"
    assert run_compiler(["-g", "-pthread", str(tmp_path / "self.c"), "-o", str(program)], cxx=False) == 0
    with on_one_core():
        recorded = run("record", "--json", "--out", tmp_path / "self.trace", "--", program)
    assert recorded.document["verdict"]["detail"] == "SIGTERM"
    assert run("solve", tmp_path / "self.trace", "--out", tmp_path / "self.schedule").code == 0
    done = run("replay", "--json", "--times", TIMES, tmp_path / "self.schedule")
    assert (done.code, done.document["failed"]) == (0, TIMES), done.document["first_divergence"]
