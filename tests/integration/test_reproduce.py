"""`recbulc reproduce` as a user runs it: the whole chain, every way in which it can stop, and what it leaves."""

import json
import os
import pty
import re
import signal
import subprocess
from pathlib import Path

import pytest
from tests.chain_support import COMMAND, built, on_one_core, one_clock, refused, run
from tests.programs.catalogue import BUGS
from tests.support import fake_root, recbulc

from recbulc.recorders.clocks import ClockWatch
from recbulc.recorders.runner import Launch
from recbulc.recorders.verdict import FailIf
from recbulc.reproduce import Task, reproduce
from recbulc.schedule import load_schedule
from recbulc.tsc_probe.skew import Skews

KEYS = {
    "verdict",
    "trace",
    "schedule",
    "seed",
    "record",
    "order",
    "solve",
    "replay",
    "racing_pair",
    "stopped_at",
    "why",
}
LOST_UPDATE = str(BUGS["lost_update"].path)
NEVER = """
#include <pthread.h>
static void *nothing(void *none) { return none; }
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, nothing, NULL);
    return pthread_join(thread, NULL);
}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty directory to work in, on one core: without clocks to measure."""
    monkeypatch.chdir(tmp_path)
    with on_one_core():
        yield tmp_path


@pytest.fixture
def never(here):
    """A source file whose program cannot fail."""
    (here / "never.c").write_text(NEVER)
    return here / "never.c"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Of the clock model."""
    return tmp_path_factory.mktemp("cache")


def test_from_a_source_file_on_two_cores(cache, tmp_path):
    """Everything at once, with clocks, in a pipe."""
    out = tmp_path / "results"
    done = recbulc("reproduce", "--json", "--seed", "1", "--times", "20", "--out", str(out), LOST_UPDATE, cache=cache)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    found = json.loads(done.stdout)
    assert found.keys() >= KEYS
    assert (found["verdict"]["how"], found["verdict"]["code"], found["seed"]) == ("exit", 1, 1)
    assert (found["trace"], found["schedule"]) == (str(out / "trace"), str(out / "schedule.json"))
    assert found["record"].keys() >= {"runs", "seconds"}
    assert 0.0 <= found["order"]["ordered_fraction"] <= 1.0
    assert (found["solve"]["status"], found["solve"]["seconds"] >= 0) == ("sat", True)
    assert (found["replay"]["runs"], found["replay"]["failed"], found["replay"]["diverged"]) == (20, 20, 0)
    assert (found["stopped_at"], found["why"]) == (None, "")
    for access in found["racing_pair"]:
        assert access.keys() >= {"file", "line", "thread", "kind"}
    said = done.stderr.splitlines()
    for line in ("seed 1", "measuring the clocks (kept for later recordings)", "checking the clocks again"):
        assert line in said
    (told,) = [line for line in said if line.startswith("record: run ")]
    assert re.match(rf"record: run {found['record']['runs']} failed after [\d.]+ s \(exit code 1\); \d+ events", told)
    assert said.index("measuring the clocks (kept for later recordings)") < said.index("record: runs ...")
    assert sorted(path.name for path in out.iterdir()) == ["program", "schedule.json", "trace"]


def test_what_a_person_reads_in_a_pipe(here):
    done = run("reproduce", "--seed", "1", "--times", "4", LOST_UPDATE)
    assert done.code == 0, done.err
    assert done.err.splitlines()[:3] == [f"building {LOST_UPDATE}", "seed 1", "record: runs ..."]
    for stage in ("record: run ", "order: stamps and synchronisation order ", "solve: ", "replay: failed 4/4 replays"):
        assert any(line.startswith(stage) for line in done.err.splitlines())
    assert "the failing run's stdout:\n6 pages" in done.err
    last = done.out.splitlines()[-4:]
    assert last == [
        "verdict: exit code 1",
        "failed 4/4 replays",
        "replay it:   recbulc replay lost_update.recbulc/schedule.json --times 4",
        "open in gdb: recbulc replay lost_update.recbulc/schedule.json --gdb",
    ]
    assert "\x1b" not in done.out + done.err
    assert "thread 0.1" in done.out


def test_quiet_says_the_result_only(here):
    done = run("reproduce", "-q", "--seed", "1", "--times", "2", LOST_UPDATE)
    assert (done.code, done.err) == (0, "")
    assert "failed 2/2 replays" in done.out
    as_json = run("reproduce", "-q", "--json", "--seed", "1", "--times", "2", LOST_UPDATE)
    assert (as_json.code, as_json.err) == (0, "")
    assert as_json.document["replay"]["failed"] == 2


@pytest.mark.parametrize("colours", [True, False])
def test_on_a_terminal(here, colours):
    """A bar that moves; its colours only where they are wanted."""
    shown = on_a_terminal(["reproduce", "--seed", "1", "--times", "30", LOST_UPDATE], colours=colours)
    assert "record: runs: " in shown
    assert "replay: failed 30/30 replays" in shown
    assert "failed 30/30 replays" in shown.rpartition("verdict:")[2]
    assert "Traceback" not in shown
    assert bool(re.search(r"\x1b\[[\d;]*3\dm", shown)) is colours


def on_a_terminal(arguments: list[str], *, colours: bool) -> str:
    """All that is written to it."""
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm-256color"}
    with subprocess.Popen(
        [COMMAND, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment | ({} if colours else {"NO_COLOR": "1"}),
    ):
        os.close(theirs)
        written = b""
        while True:
            try:
                written += os.read(ours, 65536)
            except OSError:  # nobody has the other end any more
                break
    os.close(ours)
    return written.decode()


TWO = {
    "main.cpp": """
#include <thread>
extern "C" void add(void);
extern "C" long sum(void);
int main(int argc, char **argv)
{
    std::thread one([] { for (int i = 0; i < TIMES; i++) add(); }), two([] { for (int i = 0; i < TIMES; i++) add(); });
    one.join();
    two.join();
    return argc == 3 && argv[2][0] == 'b' && sum() != 2 * TIMES ? 9 : 0;
}
""",
    "sum.c": """
static long total;
void add(void) { long before = total; total = before + 1; }
long sum(void) { return total; }
""",
}


def test_several_sources_with_options_and_arguments(here):
    for name, text in TWO.items():
        (here / name).write_text(text)
    arguments = ("--seed", "1", "--times", "3", "--cflags", "-DTIMES=4 -Wno-error=unused", "main.cpp", "sum.c")
    done = run("reproduce", "--json", *arguments, "--", "a", "b c")
    assert done.code == 0, done.err
    found = done.document
    assert (found["verdict"]["code"], found["replay"]["failed"]) == (9, 3)
    schedule = load_schedule(Path(found["schedule"]))
    assert schedule.argv == (str(here / "main.recbulc/program"), "a", "b c")
    assert {Path(site.file).name for site in schedule.sites} >= {"sum.c", "main.cpp"}


def test_a_program_that_others_built_at_level_sync(here):
    plain = here / "plain"
    subprocess.run(["cc", "-O1", "-pthread", BUGS["two_locks"].path, "-o", plain], check=True)
    refused(
        run("reproduce", "--", "./plain", "an argument"),
        2,
        "plain was not built by `recbulc cc`",
        "recbulc reproduce --level SYNC -- ./plain 'an argument'",
    )
    assert list(here.iterdir()) == [plain]
    done = run("reproduce", "--level", "SYNC", "--seed", "1", "--times", "3", "--", "./plain")
    assert done.code == 0, done.out
    assert "verdict: deadlock: the threads 0, 0.1, 0.2 wait for ever\nfailed 3/3 replays\n" in done.out


def test_what_never_fails_says_what_to_try(never):
    done = run("reproduce", "--json", "--budget", "1s", "never.c")
    found = done.document
    assert (done.code, found["stopped_at"], found["schedule"]) == (1, "record", None)
    assert re.fullmatch(r"none of \d+ runs? in \d+ s failed", found["why"])
    assert "--fail-if" in found["remedy"]
    assert found["verdict"]["how"] == "passed"
    people = run("reproduce", "--budget", "500ms", "never.c")
    assert people.code == 1
    assert people.out.startswith("stopped at record: none of ")
    assert "\n  what to do: give a longer --budget" in people.out


def test_one_thread_cannot_race(here):
    (here / "one.c").write_text("int main(void) { return 0; }\n")
    done = run("reproduce", "--json", "--budget", "200ms", "one.c")
    assert (done.code, done.document["stopped_at"]) == (1, "record")
    assert "never starts a second thread" in done.document["why"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no program is named"),
        (["--"], "no program is named"),
        (["--", "./nowhere"], "there is no program ./nowhere"),
        (["--", "/etc/passwd"], "is not executable"),
        (["--", "/etc"], "/etc is a directory"),
        (["--", "./script"], "is no executable in ELF format"),
        (["--", "/bin/true"], "was not built by `recbulc cc`"),
        (["nowhere.c"], "there is no source file nowhere.c"),
        (["folder.c"], "there is no source file folder.c"),
        (["script"], "write `recbulc reproduce -- script`"),
        (["broken.c"], "broken.c cannot be compiled (clang exits with 1)"),
        (["never.c", "--cflags", "'"], '--cflags "\'" cannot be split'),
        (["never.c", "--cflags", "-c -DX"], "cannot be compiled"),
        (["never.c", "--budget", "0"], "'0' is not a duration"),
        (["never.c", "--timeout", "soon"], "'soon' is not a duration"),
        (["never.c", "--times", "0"], "--times 0"),
        (["never.c", "--seed", "-1"], "the seed -1"),
        (["never.c", "--level", "BB"], "there is no level 'BB'"),
        (["never.c", "--fail-if", "luck"], "is no predicate"),
        (["never.c", "--fail-if", "regex:("], "regex:("),
        (["never.c", "--stdin", "nowhere"], "cannot read nowhere"),
        (["never.c", "--out", "nowhere/out"], "nowhere is no directory"),
        (["never.c", "--out", "script"], "script is there and is no directory"),
        (["never.c", "--out", "foreign"], "foreign holds other things, such as trace"),
        (["never.c", "--out", "script/out"], "script is no directory"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(never, here, arguments, said):
    (here / "script").write_text("#!/bin/sh\nexit 1\n")
    (here / "script").chmod(0o755)
    (here / "broken.c").write_text("int main(void) { return 0\n")
    (here / "folder.c").mkdir()
    (here / "foreign/trace").mkdir(parents=True)
    (here / "foreign/trace/notes").write_text("of somebody else\n")
    before = sorted(here.rglob("*"))
    refused(run("reproduce", "--json", *arguments), 2, said, "what to do: ")
    assert sorted(here.rglob("*")) == before


def test_what_was_reproduced_stays_until_there_is_something_new(here):
    (here / "bug.c").write_text(Path(LOST_UPDATE).read_text())
    assert run("reproduce", "-q", "--seed", "1", "--times", "1", "bug.c").code == 0
    out = here / "bug.recbulc"
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    (here / "bug.c").write_text("int main(void) { return 0\n")
    refused(run("reproduce", "--json", "bug.c"), 2, "cannot be compiled")
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    (here / "bug.c").write_text(NEVER)
    assert run("reproduce", "--json", "--budget", "100ms", "bug.c").code == 1
    assert sorted(path.name for path in out.iterdir()) == ["program", "trace"]


@pytest.mark.parametrize(
    ("flags", "said"),
    [("tsc rdtscp hypervisor", "constant rate"), ("tsc constant_tsc nonstop_tsc hypervisor", "RDTSCP")],
)
def test_no_clock_model_is_possible(never, here, monkeypatch, flags, said):
    root = fake_root(here / "root", flags=flags)
    monkeypatch.setenv("RECBULC_TEST_CLOCKS", json.dumps({"root": str(root)}))
    done = run("reproduce", "--json", "never.c")
    assert (done.code, done.out) == (3, "")
    assert said in done.err
    assert done.err.count("recbulc: error: ") == 1
    assert "what to do: " in done.err


def test_ctrl_c_while_recording_keeps_the_last_run(never, here):
    with subprocess.Popen(
        [COMMAND, "reproduce", "--json", "never.c"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    ) as process:
        while (line := process.stderr.readline()) != "record: runs: 10\n":
            assert line
        process.send_signal(signal.SIGINT)
        written, said = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in said
    found = json.loads(written)
    assert (found["stopped_at"], found["why"], found["interrupted"]) == ("record", "interrupted", True)
    assert sorted(path.name for path in (here / "never.recbulc").iterdir()) == ["program", "trace"]
    assert run("order", found["trace"]).code == 0
    assert running_in(here) == []


def running_in(folder: Path) -> list[str]:
    """The processes whose executable is there."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if folder in (process / "exe").readlink().parents:
                found.append(process.name)
        except OSError:
            continue
    return found


class Interrupting:
    """A listener who presses Ctrl-C when a stage begins, or at its first step."""

    def __init__(self, stage: str) -> None:
        self.stage = stage

    def note(self, text: str) -> None:
        if self.stage == text:
            self._press()

    def begins(self, stage: str) -> None:
        if self.stage == stage:
            self._press()

    def ran(self, *_: object) -> None:
        self.note("ran")

    def replayed(self, *_: object) -> None:
        self.note("replayed")

    def ended(self, *_: object) -> None:
        pass

    @staticmethod
    def _press() -> None:
        os.kill(os.getpid(), signal.SIGINT)


def task_of(here: Path, name: str, **how) -> Task:
    launch = Launch(built(name), (str(built(name)),), dict(os.environ), here)
    how = {"budget_s": 60.0, "times": 5} | how
    return Task(launch, here / "out", FailIf.parse(BUGS[name].fail_if), timeout_s=10.0, seed=1, **how)


@pytest.mark.parametrize(
    ("when", "stage", "left"),
    [
        ("ran", "record", ["trace"]),
        ("order", "order", ["trace"]),
        ("solve", "solve", ["trace"]),
        ("replay", "replay", ["schedule.json", "trace"]),
        ("replayed", "replay", ["schedule.json", "trace"]),
    ],
)
def test_ctrl_c_in_every_stage_keeps_what_was_found(here, when, stage, left):
    found = reproduce(task_of(here, "lost_update"), one_clock(), Interrupting(when))
    assert (found.stopped_at, found.why, found.interrupted) == (stage, "interrupted", True)
    assert sorted(path.name for path in (here / "out").iterdir()) == left
    assert found.remedy or stage == "record"


def test_ctrl_c_before_anything_is_recorded_leaves_nothing(here):
    with pytest.raises(KeyboardInterrupt):
        reproduce(task_of(here, "lost_update"), one_clock(), Interrupting("record"))
    assert list(here.iterdir()) == []


def test_ctrl_c_while_the_clocks_are_checked_again_keeps_the_failing_run(cache, tmp_path, monkeypatch):
    """But then nothing bounds the skew after the recording: stamps of different cores order nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    clocks = ClockWatch.of_this_machine(Skews())
    task = task_of(tmp_path, "lost_update")
    found = reproduce(task, clocks, Interrupting("checking the clocks again"))
    assert (found.stopped_at, found.interrupted) == ("record", True)
    assert found.verdict.failed
    assert "recbulc solve" in found.remedy
    assert found.recorded.trace.meta.clocks.modified
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["trace"]


class Patient:
    """A listener who wants to see everything."""

    def __init__(self) -> None:
        self.replays = 0

    def note(self, text: str) -> None:
        pass

    def begins(self, stage: str) -> None:
        pass

    ran = ended = lambda *_: None

    def replayed(self, *_: object) -> None:
        self.replays += 1


def test_the_budget_ends_replays_too(here):
    listener = Patient()
    task = task_of(here, "lost_update", budget_s=3.0, times=1_000_000)
    found = reproduce(task, one_clock(), listener)
    assert (found.stopped_at, found.interrupted) == ("replay", False)
    assert found.why == (f"the budget is used up after {listener.replays} of 1000000 replays; all of them failed")
    assert 0 < found.replayed.failed == found.replayed.runs == listener.replays
    assert "recbulc replay" in found.remedy


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a file system")
@pytest.mark.parametrize("size", ["4k", "32k", "100k"])  # for nothing, for no control page, for no logs
def test_a_full_disk_is_said(here, size):
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(here)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("file systems cannot be mounted here")
    try:
        done = run("reproduce", "--json", "--seed", "1", "--out", here / "out", "--", built("lost_update"))
        left = [path.name for path in here.rglob("*partial*")]
    finally:
        subprocess.run(["umount", "-l", str(here)], check=True)
    assert done.code in {1, 2}
    assert left == []
    if done.code == 2:
        refused(done, 2, "No space left on device")
    else:
        assert "could not grow" in done.document["why"]
