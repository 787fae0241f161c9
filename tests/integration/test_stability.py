"""`recbulc stability` as a user runs it."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support import X, Y, recbulc

BRIEF = ("--for", "2s", "--every", "500ms", "--cores", f"{X},{Y}")


def test_windows_csv_picture_and_continuation(tmp_path):
    csv, plot = tmp_path / "skew.csv", tmp_path / "skew.png"
    done = recbulc("stability", *BRIEF, "--csv", str(csv), "--plot", str(plot), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["samples"]) == 4
    assert all(s["lo"] <= s["d"] <= s["hi"] and s["cores"] == [X, Y] for s in found["samples"])
    assert found["variance"] >= 0
    assert plot.read_bytes().startswith(b"\x89PNG")
    again = recbulc("stability", *BRIEF, "--csv", str(csv), "--json")
    samples = json.loads(again.stdout)["samples"]
    assert samples[:4] == found["samples"]
    assert len(samples) == 8
    assert [s["t"] for s in samples] == sorted(s["t"] for s in samples)
    shown = recbulc("stability", "--from", str(csv), "--plot", str(tmp_path / "again.svg"), "--json")
    assert json.loads(shown.stdout)["samples"] == samples


def test_ctrl_c_keeps_everything_measured(tmp_path):
    csv = tmp_path / "skew.csv"
    command = [Path(sys.executable).parent / "recbulc", "stability", "--for", "1h", "--every", "200ms", "--json", "-v"]
    running = subprocess.Popen([*command, "--csv", csv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    windows = 0
    while windows < 3:
        line = running.stderr.readline()
        assert line, "it ended by itself"
        windows += "d = " in line
    running.send_signal(signal.SIGINT)
    out, errors = running.communicate(timeout=60)
    assert running.returncode == 0
    assert "interrupted" in errors
    kept = json.loads(out)["samples"]
    assert len(kept) >= 3
    assert csv.read_text().count("\n") == len(kept) + 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--for", "soon"], "not a duration"),
        (["--for", "1s", "--every", "2s"], "windows of 2s"),
        (["--from", "/nowhere.csv"], "cannot read"),
        (["--from", "a.csv", "--csv", "b.csv"], "one of them"),
        (["--for", "1s", "--every", "1s", "--csv", "/nowhere/skew.csv"], "cannot write"),
    ],
)
def test_bad_input_is_a_clear_error(args, message):
    done = recbulc("stability", *args)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
