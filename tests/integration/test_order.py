"""`recbulc order` as a user runs it, and what it says of recordings that are none or are damaged."""

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.chain_support import COMMAND, NAMES, chain, damaged, refused, run
from tests.support import recbulc

KEYS = {"events", "conflicting_pairs", "ordered", "unordered", "ordered_fraction", "seconds"}
DAMAGES = 150


@pytest.mark.parametrize("name", NAMES)
def test_the_document_has_the_keys_of_the_contract(name):
    done = run("order", "--json", chain(name).trace)
    assert done.code == 0, done.err
    found = done.document
    assert found.keys() >= KEYS
    assert found["events"] > 0
    assert found["ordered"] + found["unordered"] == found["conflicting_pairs"]
    assert 0.0 <= found["ordered_fraction"] <= 1.0
    assert found["conflicting_pairs"] > 0


def test_on_one_core_everything_is_ordered_whichever_bounds_are_asked_for():
    for interval in ("sound", "confident"):
        found = run("order", "--json", "--interval", interval, chain("lost_update").trace).document
        assert (found["interval"], found["unordered"], found["open_pairs"]) == (interval, 0, [])


def test_in_a_pipe_people_and_programs_read_the_same():
    trace = str(chain("lost_update").trace)
    people, program = recbulc("order", trace), recbulc("order", "--json", trace)
    assert people.returncode == program.returncode == 0
    assert program.stderr == ""
    found = json.loads(program.stdout)
    assert f"{found['events']} events, {found['conflicting_pairs']} conflicting pairs" in people.stdout
    assert "\x1b" not in people.stdout


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(chain("lost_update").trace, tmp_path / "t")
    return tmp_path / "t"


FILES = ("meta.json", "threads.json", "sites.json", "modules", "0.events", "1.events", "checksums.json")


def test_a_trace_is_these_files():
    assert {path.name for path in chain("lost_update").trace.iterdir()} == {*FILES, "2.events"}


@pytest.mark.parametrize("command", ["order", "solve"])
@pytest.mark.parametrize("file", FILES[:-1])
def test_what_is_missing_empty_or_cut_is_named(copy, command, file):
    whole = (copy / file).read_bytes()
    for content in (None, b"", whole[: len(whole) // 2]):
        (copy / file).unlink()
        if content is not None:
            (copy / file).write_bytes(content)
        refused(run(command, "--json", copy), 2, file, "what to do: ")
        (copy / file).write_bytes(whole)
    assert run("order", copy).code == 0


def test_other_things_are_no_trace(copy, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("{}")
    refused(run("order", tmp_path / "nowhere"), 2, "there is no trace", "recbulc record")
    refused(run("order", tmp_path / "empty"), 2, "no meta.json")
    refused(run("order", tmp_path / "file"), 2, "there is no trace")
    refused(run("order", chain("lost_update").schedule), 2, "there is no trace")
    (copy / "meta.json").write_text('{"format": "recbulc-schedule", "version": 1}')
    refused(run("order", copy), 2, "is no trace (its format is 'recbulc-schedule')")
    (copy / "meta.json").write_text('{"format": "recbulc-trace", "version": 99}')
    refused(run("order", copy), 2, "version 99")
    (copy / "meta.json").unlink()
    (copy / "meta.json").mkdir()
    refused(run("order", copy), 2, "no meta.json")


def test_no_damage_ends_in_a_traceback(copy):
    """Whatever is changed in whatever file: one sentence, or (white space in the list of checksums) nothing at all."""
    rng = random.Random(5)
    for _ in range(DAMAGES):
        path = rng.choice(sorted(copy.iterdir()))
        whole = path.read_bytes()
        path.write_bytes(damaged(whole, rng))
        if path.read_bytes() != whole:
            for command in ("order", "solve"):
                done = run(command, "--json", copy)
                if path.name != "checksums.json" or done.code:
                    refused(done, 2, "what to do: ")
        path.write_bytes(whole)


def test_its_own_output_cannot_be_written():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [COMMAND, "order", "--json", chain("lost_update").trace],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "recbulc: error: cannot write the output: [Errno 28] No space left on device\n"
