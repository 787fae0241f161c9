"""`recbulc calibrate` as a user runs it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support import X, Y, fake_root, recbulc

from recbulc.calibration.model import checksum
from recbulc.tsc_probe.machine import read_machine

PAIR = f"{X},{Y}"
SHORT = ("--cores", PAIR, "--rounds", "5000")


def calibrated(out: Path, *args: str, **how) -> dict:
    done = recbulc("calibrate", *SHORT, "--json", "--out", str(out), *args, **how)
    assert done.returncode in {0, 1}, done.stderr
    assert done.stdout.count("\n") == 1
    return json.loads(done.stdout) | {"exit": done.returncode}


def test_the_document_has_the_keys_of_the_contract(tmp_path):
    found = calibrated(tmp_path / "clocks.json", "--table")
    pair = found["pairs"][0]
    assert pair["cores"] == [X, Y]
    assert pair["sound"][0] <= pair["confident"][0] <= pair["confident"][1] <= pair["sound"][1]
    assert pair["confidence"] == 0.99999
    assert set(pair["testers"]) == {"5a", "5b", "5c", "5d", "5c-bare", "5d-bare", "handoff"}
    assert found["granularity_ticks"] >= 1
    assert 5_000 <= found["rounds"] < 6_000
    assert 0 <= found["dropped_rounds"] < found["played_rounds"]
    assert found["seconds"] < 30
    assert found["changed"] is None
    assert found["smallest_detectable_ticks"] > 0
    assert len(found["table"]) == 3 * 3 * 4
    assert found["injected"] is False
    assert pair["sound"][1] - pair["sound"][0] > 0  # how narrow it is, benchmarks/calibration.py says as a rate
    assert pair["round_trip_ticks"] > 0


def test_tables_and_pictures_for_people(tmp_path):
    out, plot = tmp_path / "clocks.json", tmp_path / "clocks.png"
    done = recbulc("calibrate", *SHORT, "--out", str(out), "--plot", str(plot))
    assert done.returncode == 0, done.stderr
    assert f"{X} → {Y}" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr
    assert "calibrating" in done.stderr
    assert plot.read_bytes().startswith(b"\x89PNG")
    quiet = recbulc("calibrate", *SHORT, "--out", str(out), "-q")
    assert quiet.stderr == ""


def test_without_out_the_model_goes_to_the_users_cache(tmp_path):
    done = recbulc("calibrate", *SHORT, "--json", cache=tmp_path)
    assert Path(json.loads(done.stdout)["model"]).is_relative_to(tmp_path)


@pytest.mark.parametrize("width", [64, 32])
@pytest.mark.parametrize("offset", [-(10**9), 1_000, 987_654_321])
def test_an_injected_offset_shifts_the_result_by_itself(tmp_path, offset, width):
    plain = calibrated(tmp_path / "a.json")["pairs"][0]
    clocks = {"skews": {str(Y): {"offset_ticks": offset}}, "width_bits": width}
    skewed = calibrated(tmp_path / "b.json", clocks=clocks)
    assert skewed["injected"] is True
    shifted = skewed["pairs"][0]
    assert plain["sound"][0] + offset <= shifted["sound"][1]
    assert shifted["sound"][0] <= plain["sound"][1] + offset


def test_a_changed_clock_is_seen_and_said(tmp_path):
    old = tmp_path / "old.json"
    calibrated(old)
    clocks = {"skews": {str(Y): {"offset_ticks": 1_000}}}
    changed = calibrated(tmp_path / "new.json", "--compare", str(old), clocks=clocks)
    assert changed["changed"] is True
    assert changed["exit"] == 1
    assert changed["pairs"][0]["shift_ticks"] == pytest.approx(1_000, abs=150)
    done = recbulc("calibrate", *SHORT, "--out", str(tmp_path / "n.json"), "--compare", str(old), clocks=clocks)
    assert "CHANGED" in done.stdout
    assert done.returncode == 1


@pytest.mark.skipif(not read_machine().is_guest, reason="only a guest's cores move")
def test_how_a_guests_cores_move_is_remembered(tmp_path):
    """In the cache, by models measured without the test hook; where that cannot be written, there is a warning."""
    cache, out = tmp_path / "cache", tmp_path / "clocks.json"
    calibrated(out, clocks={"skews": {str(Y): {"offset_ticks": 1_000}}}, cache=cache)
    assert not list(cache.rglob("*.moves.json"))
    assert calibrated(out, cache=cache)["pairs"][0]["seen_span_ticks"] is not None
    (kept,) = cache.rglob("*.moves.json")
    assert json.loads(kept.read_text())["seen"][PAIR] == json.loads(out.read_text())["pairs"][0]["seen"]
    (tmp_path / "file").touch()
    done = recbulc("calibrate", *SHORT, "--out", str(out), cache=tmp_path / "file")
    assert done.returncode == 0
    assert "will not know how this guest's cores move" in done.stderr


def test_a_rate_is_seen_as_a_change(tmp_path):
    """Core Y runs fast by 0.1 ppm since its counter was 0: far ahead by now."""
    old = tmp_path / "old.json"
    calibrated(old)
    clocks = {"skews": {str(Y): {"rate_ppm": 0.1}}}
    assert calibrated(tmp_path / "new.json", "--compare", str(old), clocks=clocks)["changed"] is True


def test_models_that_cannot_be_compared_are_refused(tmp_path):
    old = tmp_path / "old.json"
    calibrated(old)
    content = json.loads(old.read_text())
    content["machine"]["boot_id"] = "another"
    del content["checksum"]
    old.write_text(json.dumps(content | {"checksum": checksum(content)}))
    done = recbulc("calibrate", *SHORT, "--compare", str(old))
    assert done.returncode == 2
    assert "another boot" in done.stderr
    old.write_text("{")
    done = recbulc("calibrate", *SHORT, "--compare", str(old))
    assert done.returncode == 2
    assert "damaged" in done.stderr


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["--cores", f"{X},4000"], 3, "off-line or does not exist"),
        (["--cores", "zero"], 2, "names no cores"),
        (["--cores", str(X)], 3, "a skew needs two"),
        (["--cores", f"{X},{X}"], 2, "named twice"),
        (["--cores", ""], 2, "names no cores"),
        (["--cores", "3-1"], 2, "names no cores"),
        (["--cores", "0-99999999999"], 2, "names no cores"),
        (["--rounds", "10"], 2, "too few"),
        (["--rounds", "99999999999"], 2, "too many"),
        (["--rounds", "many"], 2, "invalid int"),
        (["--confidence", "1.5"], 2, "makes no interval"),
        (["--confidence", "0.9999999999999999"], 2, "makes no interval"),
        (["--confidence", "nan"], 2, "makes no interval"),
        (["--out", "/nowhere/clocks.json"], 2, "no directory"),
        (["--out", "/"], 2, "cannot write"),
        (["--out", __file__], 2, "is no clock model"),
        (["--plot", "clocks.txt"], 2, "unknown kind of picture"),
        (["--plot", "/nowhere/clocks.png"], 2, "no directory"),
        (["--drift-limit", "-1"], 2, "drift limit"),
        (["--drift-limit", "nan"], 2, "drift limit"),
        (["--drift-limit", "inf"], 2, "drift limit"),
    ],
)
def test_bad_input_is_a_clear_error(args, code, message):
    done = recbulc("calibrate", *args)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_one_core_is_not_enough():
    done = recbulc("calibrate", cores={X})
    assert done.returncode == 3
    assert "a skew needs two" in done.stderr


def test_a_core_outside_the_affinity_mask_is_refused():
    done = recbulc("calibrate", "--cores", PAIR, cores={X})
    assert done.returncode == 3
    assert f"core {Y} is not in this process's affinity mask" in done.stderr


def test_machines_without_usable_counters(tmp_path):
    variant = fake_root(tmp_path / "variant", flags="tsc rdtscp")
    done = recbulc("calibrate", *SHORT, clocks={"root": str(variant)})
    assert done.returncode == 3
    assert "constant rate" in done.stderr
    offline = fake_root(tmp_path / "offline", online=str(X))
    done = recbulc("calibrate", "--cores", PAIR, clocks={"root": str(offline)})
    assert done.returncode == 3
    assert f"core {Y} is off-line" in done.stderr
    constant = fake_root(tmp_path / "constant", flags="tsc rdtscp constant_tsc")
    done = recbulc("calibrate", *SHORT, "--out", str(tmp_path / "c.json"), clocks={"root": str(constant)})
    assert done.returncode == 0, done.stderr
    assert "constant but not invariant" in done.stderr


def test_output_that_cannot_be_written_is_a_clear_error(tmp_path):
    command = [Path(sys.executable).parent / "recbulc", "calibrate", *SHORT, "-q", "--out", tmp_path / "c.json"]
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "cannot write the output" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_terminal_without_arrows_shows_question_marks(tmp_path):
    command = [Path(sys.executable).parent / "recbulc", "calibrate", *SHORT, "-q", "--out", tmp_path / "c.json"]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONIOENCODING": "ascii"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert f"{X} ? {Y}" in done.stdout


def test_a_malformed_test_hook_is_refused():
    done = recbulc("calibrate", clocks={"skews": 3})
    assert done.returncode == 2
    assert "RECBULC_TEST_CLOCKS" in done.stderr


def test_ctrl_c_ends_at_once_and_leaves_no_half_file(tmp_path):
    out = tmp_path / "clocks.json"
    command = [Path(sys.executable).parent / "recbulc", "calibrate", "--cores", PAIR, "--rounds", "100000000"]
    running = subprocess.Popen([*command, "--out", out], stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    assert "calibrating" in running.stderr.readline()
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "interrupted" in errors
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []
