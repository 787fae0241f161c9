"""`recbulc solve` as a user runs it."""

import resource
import shlex
import subprocess

import pytest
from tests.chain_support import COMMAND, NAMES, chain, refused, run

from recbulc.recorders.trace import Trace
from recbulc.schedule import load_schedule

KEYS = {"status", "schedule", "accesses", "unknowns", "constraints_before", "constraints", "build_seconds"}
KEYS |= {"solve_seconds", "ordered_fraction"}


@pytest.mark.parametrize("name", NAMES)
def test_the_document_has_the_keys_of_the_contract(name, tmp_path):
    trace = chain(name).trace
    done = run("solve", "--json", trace, "--out", tmp_path / "s")
    assert done.code == 0, done.err
    found = done.document
    assert found.keys() >= KEYS
    assert (found["status"], found["schedule"]) == ("sat", str(tmp_path / "s"))
    assert found["accesses"] > 0
    assert found["constraints"] <= found["constraints_before"]
    schedule = load_schedule(tmp_path / "s")
    recorded = Trace.load(trace).meta
    assert (schedule.verdict.how, schedule.verdict.code) == (recorded.verdict.how, recorded.verdict.code)
    assert schedule.verdict.how == chain(name).bug.how
    assert (schedule.program, schedule.argv, schedule.cwd) == (recorded.program, recorded.argv, recorded.cwd)


@pytest.mark.parametrize("options", [["--no-timestamps"], ["--interval", "confident"], ["--engine", "z3"]])
def test_every_way_of_solving_finds_a_schedule(options, tmp_path):
    done = run("solve", "--json", *options, chain("lost_update").trace, "--out", tmp_path / "s")
    assert done.document["status"] == "sat", done.err
    assert run("replay", "--json", "--times", "3", tmp_path / "s").document["failed"] == 3


def test_people_are_told_how_to_go_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my [bug]").symlink_to(chain("lost_update").trace)
    done = run("solve", "my [bug]")
    assert done.code == 0, done.err
    name = f"{chain('lost_update').trace.name}.schedule"
    assert f"schedule: {name}\nreplay it: recbulc replay {shlex.quote(name)} --times 100\n" in done.out
    assert run("solve", "-q", "my [bug]").err == ""
    out = "with [brackets], " + "long " * 40
    assert f"recbulc replay {shlex.quote(out)} --times 100\n" in run("solve", "my [bug]", "--out", out).out


def test_what_is_not_supported_is_no_success():
    done = run("solve", "--json", "--memory-model", "tso", chain("lost_update").trace)
    assert (done.code, done.document["status"], done.document["schedule"]) == (1, "unsupported", None)
    assert "tso" in done.document["why"]


def test_where_a_schedule_cannot_go(tmp_path):
    trace = chain("lost_update").trace
    (tmp_path / "mine").write_text("my notes\n")
    (tmp_path / "folder").mkdir()
    for out, said in (
        ("nowhere/s", "is no directory"),
        ("mine", "is there and is no schedule"),
        ("folder", "is there and is no schedule"),
        ("mine/s", "is no directory"),
    ):
        refused(run("solve", trace, "--out", tmp_path / out), 2, said, "--out")
    assert (tmp_path / "mine").read_text() == "my notes\n"
    for _ in range(2):  # but an earlier schedule is replaced
        assert run("solve", trace, "--out", tmp_path / "s").code == 0


def test_a_full_disk_leaves_what_was_there(tmp_path):
    assert run("solve", chain("lost_update").trace, "--out", tmp_path / "s").code == 0
    before = (tmp_path / "s").read_bytes()
    done = subprocess.run(
        [COMMAND, "solve", chain("lost_update").trace, "--out", tmp_path / "s"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert f"recbulc: error: cannot write {tmp_path}/s: File too large" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["s"]
    assert (tmp_path / "s").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--timeout", "soon"], "not a duration"), (["--engine", "luck"], "invalid choice"), (["--interval", "x"], "x")],
)
def test_bad_options(options, said):
    done = run("solve", *options, chain("lost_update").trace)
    assert (done.code, said in done.err) == (2, True)
