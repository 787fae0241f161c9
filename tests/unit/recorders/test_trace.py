"""Traces: what is read back, what is refused, and what addresses are called."""

import dataclasses
import json
from pathlib import Path

import msgspec
import numpy as np
import pytest

from recbulc.calibration.interval import FAR, Interval
from recbulc.errors import InputError
from recbulc.recorders.control import ControlPage, Mode, Setting, ThreadState
from recbulc.recorders.events import EVENT, Kind
from recbulc.recorders.meta import Meta, PairSkew, TraceClocks, TraceSites, TraceThread
from recbulc.recorders.objects import Symbol, Symbols, demangled
from recbulc.recorders.trace import Trace, is_trace, used_records
from recbulc.schedule import Site, Verdict
from recbulc.tsc_probe.counter import Granule
from recbulc.tsc_probe.skew import Skew, Skews

USER = Site(7, "BEFORE_WRITE", "main", "bug.c", 12, 3, 0)
HEADER = Site(8, "BEFORE_RMW", "fetch_add", "/usr/include/c++/12/atomic", 600, 9, 0)
CALL = Site(9, "CALL", "main", "bug.c", 20, 5, 0)


def event(kind: Kind, before: int, **fields) -> np.ndarray:
    one = np.zeros(1, dtype=EVENT)
    for name, value in {"kind": kind, "before": before, "after": before + 1, **fields}.items():
        one[name] = value
    return one


def clocks(**changed) -> TraceClocks:
    pairs = (PairSkew((0, 1), Interval(-100, 50), Interval(-20, 10)),)
    how = {"hz": 1e9, "granule": Granule(1, 0), "width_bits": 64, "modified": False, "why": "", "injected": None}
    return TraceClocks(**(how | {"pairs": pairs, "model": pairs, "before": pairs, "after": pairs} | changed))


def meta(**changed) -> Meta:
    how = {
        "program": "/bug",
        "build_id": "0",
        "argv": ("bug",),
        "env": {},
        "cwd": "/",
        "stdin": b"\0in",
        "level": "RW",
        "stamp": "2e",
        "recorder": "local",
        "cores": (0, 1),
        "pinned": True,
        "seed": 1,
        "strategy": "plain",
        "run": 1,
        "timeout_s": 1.0,
        "created": "",
        "complete": True,
        "clocks": clocks(),
        "verdict": Verdict("exit", 1),
    }
    return Meta(**(how | changed))


def write_trace(path: Path, logs: list[np.ndarray], **changed) -> Path:
    path.mkdir()
    threads = []
    for number, log in enumerate(logs):
        (path / f"{number}.events").write_bytes(log.tobytes())
        threads.append(
            TraceThread(
                number=number,
                name=f"0.{number}" if number else "0",
                parent=0,
                core=number % 2,
                events=len(log),
                lost=False,
                end="ended",
                blocked=None,
                pthread=0x7FFFF7000000 - number * 0x1000000,
            )
        )
    (path / "meta.json").write_bytes(msgspec.json.encode(meta(**changed)))
    (path / "threads.json").write_bytes(msgspec.json.encode(threads))
    (path / "sites.json").write_bytes(msgspec.json.encode(TraceSites((USER, HEADER, CALL), (8,))))
    (path / "modules").write_text("0000555555554000 /nowhere/bug\n")
    return path


@pytest.fixture
def logs() -> list[np.ndarray]:
    first = [
        event(Kind.THREAD_START, 10),
        event(Kind.MALLOC, 20, object=0x5000, value=64, call=9),
        event(Kind.MALLOC, 30, object=0x6000, value=16, call=9),
        event(Kind.WRITE, 40, object=0x6008, value=5, size=8, site=7, call=9),
        event(Kind.FREE, 50, object=0x5000, value=64),
    ]
    second = [
        event(Kind.THREAD_START, 35, core=1, core_after=1),
        event(Kind.MALLOC, 60, object=0x5000, value=32, call=0, core=1, core_after=1),
        event(Kind.RMW, 70, object=0x5004, value=2, old=1, size=4, site=8, call=9, core=1, core_after=1),
    ]
    return [np.concatenate(first), np.concatenate(second)]


def test_what_was_written_is_read(tmp_path, logs):
    trace = Trace.load(write_trace(tmp_path / "t", logs))
    assert [np.array_equal(read, log) for read, log in zip(trace.events, logs, strict=True)] == [True, True]
    assert isinstance(trace.events[0], np.memmap)
    assert trace.meta == meta()
    assert trace.meta.stdin == b"\0in"
    assert [thread.name for thread in trace.threads] == ["0", "0.1"]
    assert trace.sites[7] == USER
    assert trace.lost == 0


def test_intervals_have_a_direction(tmp_path, logs):
    trace = Trace.load(write_trace(tmp_path / "t", logs))
    assert trace.interval(0, 1) == (-100, 50)
    assert trace.interval(1, 0) == (-50, 100)
    assert trace.interval(1, 0, "confident") == (-10, 20)
    assert trace.interval(1, 1) == (0, 0)
    assert trace.interval(0, 5) == (-FAR, FAR)


def test_a_place_is_the_users_own_line(tmp_path, logs):
    trace = Trace.load(write_trace(tmp_path / "t", logs))
    assert trace.location(trace.events[0][3]) == USER
    assert trace.location(trace.events[1][2]) == CALL  # its site is in a header
    assert trace.location(trace.events[0][1]) == CALL  # it has no site
    assert trace.location(trace.events[0][0]) is None


def test_objects_are_named_by_where_they_were_allocated(tmp_path, logs):
    trace = Trace.load(write_trace(tmp_path / "t", logs))
    assert str(trace.object_name(trace.events[0][3])) == "⟨bug.c:20, 0, 1⟩+8"
    assert str(trace.place(0x5004, 45)) == "⟨bug.c:20, 0, 0⟩+4"
    assert str(trace.object_name(trace.events[1][2])) == "⟨?, 0.1, 0⟩+4"  # given out again
    assert str(trace.place(0x7FFFF6000000 - 16, 0)) == "⟨stack of 0.1⟩-16"
    assert trace.place(0x40, 0) is None


def test_symbols_have_an_extent():
    symbols = Symbols([Symbol(0x1000, 8, "counter"), Symbol(0x2000, 40, "table"), Symbol(0x3000, 0, "end")])
    assert str(symbols.find(0x1000)) == "counter"
    assert str(symbols.find(0x2014)) == "table+20"
    assert str(symbols.find(0x3000)) == "end"
    assert [symbols.find(at) for at in (0x0, 0x1008, 0x2028, 0x3001)] == [None] * 4


def test_cxx_names_are_as_they_were_written():
    assert demangled("_ZZ4mainE4pool") == "main::pool"
    assert [demangled(name) for name in ("total", "_Zbad", "")] == ["total", "_Zbad", ""]


def test_injected_skews_are_applied_to_the_stamps(tmp_path, logs):
    skews = Skews({"1": Skew(offset_ticks=-1_000), "0": Skew(rate_ppm=500_000.0)})
    for log in logs:
        log["before"] += 10_000
        log["after"] += 10_000
    logs[0]["after"][4] = 0  # it did not end
    trace = Trace.load(write_trace(tmp_path / "t", logs, clocks=clocks(injected=skews)))
    assert trace.events[1]["before"].tolist() == [9_035, 9_060, 9_070]
    assert trace.events[0]["before"].tolist() == [15_015, 15_030, 15_045, 15_060, 15_075]
    assert trace.events[0]["after"][3:].tolist() == [15_061, 0]


def test_narrow_counters_are_unwrapped_alike_in_all_threads(tmp_path, logs):
    for log in logs:
        log["before"] += (3 << 16) - 45
        log["after"] += (3 << 16) - 45
    wide = [log["before"].copy() for log in logs]
    trace = Trace.load(write_trace(tmp_path / "t", logs, clocks=clocks(injected=Skews(width_bits=16))))
    for read, log, before in zip(trace.events, logs, wide, strict=True):
        assert np.array_equal(read["before"], before)
        assert np.array_equal(read["after"], log["after"])


def test_unused_records_end_a_log(tmp_path):
    log = tmp_path / "0.events"
    assert used_records(log) == 0
    for used in (0, 1, 5, 8):
        records = np.zeros(8, dtype=EVENT)
        records["before"][:used] = 7
        log.write_bytes(records.tobytes() + b"cut off")
        assert used_records(log) == used


def test_a_recording_that_nobody_finished_can_be_read(tmp_path, logs):
    path = write_trace(tmp_path / "t", logs, complete=False)
    (path / "threads.json").unlink()
    (path / "sites.json").unlink()
    (path / "1.events").write_bytes(logs[1].tobytes() + bytes(4096))
    page = ControlPage.create(path / "control", Setting(Mode.RECORD, cores=(0, 1)))
    page._page["nthreads"] = 2
    rows = page._page["threads"]
    rows["nth"][1], rows["state"][1], rows["kind"][1], rows["call"][1] = 1, ThreadState.BLOCKED, Kind.MUTEX_LOCK, 9
    trace = Trace.load(path)
    assert [len(events) for events in trace.events] == [5, 3]
    assert trace.threads[1].end == "blocked"
    assert trace.threads[1].blocked.kind == "MUTEX_LOCK"
    assert trace.threads[1].name == "0.1"


def damaged_header(**changes):
    def damage(path: Path) -> None:
        content = json.loads((path / "meta.json").read_text())
        (path / "meta.json").write_text(json.dumps(content | changes))

    return damage


def damaged_kind(path: Path) -> None:
    events = np.fromfile(path / "0.events", dtype=EVENT)
    events["kind"][3] = 250
    events.tofile(path / "0.events")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: (path / "meta.json").unlink(), "is no trace: it has no meta.json"),
        (lambda path: (path / "meta.json").write_text("{"), "meta.json is damaged"),
        (lambda path: (path / "meta.json").write_bytes(b"\xff\xfe"), "meta.json is damaged"),
        (damaged_header(format="other"), "is no trace"),
        (damaged_header(version=99), "has version 99"),
        (damaged_header(level=5), "damaged"),
        (lambda path: (path / "threads.json").write_text("[]]"), "threads.json is damaged"),
        (lambda path: (path / "threads.json").unlink(), "control page"),
        (lambda path: (path / "1.events").unlink(), "1.events is damaged"),
        (lambda path: (path / "1.events").write_bytes(b"short"), "1.events is damaged"),
        (damaged_kind, "event 3 is none"),
        (lambda path: (path / "sites.json").write_text("{}"), "sites.json is damaged"),
        (lambda path: (path / "modules").write_text("here be dragons\n"), "modules is damaged"),
    ],
)
def test_damage_is_said(tmp_path, logs, damage, message):
    path = write_trace(tmp_path / "t", logs)
    damage(path)
    with pytest.raises(InputError, match=message) as caught:
        Trace.load(path)
    assert caught.value.remedy


def test_what_is_no_trace(tmp_path, logs):
    with pytest.raises(InputError, match="there is no trace"):
        Trace.load(tmp_path / "nowhere")
    assert not is_trace(tmp_path)
    assert is_trace(write_trace(tmp_path / "t", logs))


def test_a_trace_says_that_it_cannot_change(tmp_path, logs):
    trace = Trace.load(write_trace(tmp_path / "t", logs))
    with pytest.raises(dataclasses.FrozenInstanceError):
        trace.path = tmp_path
    with pytest.raises(ValueError, match="read-only"):
        trace.events[0]["before"][0] = 1
