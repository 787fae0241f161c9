"""`recbulc doctor` as a user runs it."""

import json
import os

from tests.support import fake_root, recbulc

X = min(os.sched_getaffinity(0))


def test_the_document_has_the_keys_of_the_contract():
    done = recbulc("doctor", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["cores"]) >= 2
    assert found["tsc"]["invariant"] in {True, False}
    assert found["tsc"]["granularity_ticks"] >= 1
    assert 1e8 < found["tsc"]["hz"] < 1e10
    assert found["compiler"]
    assert all(set(check) == {"name", "ok", "detail", "remedy"} for check in found["checks"])
    assert found["litmus"] == []
    assert found["injected"] is False


def test_litmus_lists_every_sequence():
    done = recbulc("doctor", "--litmus", "--json", "-q")
    assert done.returncode == 0, done.stderr
    litmus = json.loads(done.stdout)["litmus"]
    assert [row["sequence"] for row in litmus] == ["rdtsc", "rdtscp", "2c", "2d", "2e", "card"]
    assert all(row["violations"] == 0 for row in litmus[2:])
    assert all(row["rounds"] == 400_000 for row in litmus)


def test_the_test_hook_is_never_silent():
    done = recbulc("doctor", "--json", clocks={"width_bits": 32})
    assert json.loads(done.stdout)["injected"] is True
    assert "for tests only" in done.stderr


def test_what_is_missing_is_named_with_its_remedy(tmp_path):
    done = recbulc("doctor", "--json", clocks={"root": str(fake_root(tmp_path, flags="tsc"))})
    assert done.returncode == 3
    failed = [check for check in json.loads(done.stdout)["checks"] if not check["ok"]]
    assert {check["name"] for check in failed} >= {"TSC", "invariant TSC"}
    assert all(check["remedy"] for check in failed)


def test_one_core_is_a_failed_check():
    done = recbulc("doctor", cores={X})
    assert done.returncode == 3
    assert "widen the affinity mask" in " ".join(done.stdout.split())
