"""Sites become calls: the right ones, with the right operands, and the program does not notice."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from tests.runtime_support import build, record, setting

from recbulc.recorders.control import ControlPage, Knobs, Level
from recbulc.recorders.events import Flag, Kind
from recbulc.recorders.runtime import library_path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="module")
def race(folder):
    return build("race.c", folder)


@pytest.mark.parametrize("linking", [("-fPIE", "-pie"), ("-fno-pie", "-no-pie")], ids=["pie", "no-pie"])
def test_every_addressing_mode(folder, linking):
    recorded = record(build("addressing.c", folder, *linking), level=Level.RW)
    expected = [
        (int(site), int(address, 16), int(value, 16))
        for site, address, value in map(str.split, recorded.result.stdout.decode().splitlines())
    ]
    accesses = recorded.of(0, Kind.READ, Kind.WRITE, Kind.RMW)
    assert [(int(a["site"]), int(a["object"]), int(a["value"])) for a in accesses] == expected
    assert list(accesses["size"]) == [8] * 11 + [1]
    assert accesses[10]["kind"] == Kind.RMW
    assert (accesses[10]["old"], accesses[10]["flags"]) == (0, Flag.ATOMIC)
    assert recorded.result.code == 1  # the object's byte says: run in pieces
    assert (recorded.page.sites_patched, recorded.page.sites_unpatched) == (24, 0)


def test_dormant_sites_cost_nothing_and_log_nothing(race):
    recorded = record(race, level=Level.SYNC)
    assert recorded.page.sites_patched == 0
    assert list(recorded.events(1)["kind"]) == [Kind.THREAD_START, Kind.THREAD_END]


@pytest.mark.parametrize("level", [Level.RW, Level.FUNC])
def test_a_site_changes_no_register(folder, level):
    recorded = record(build("registers.c", folder), level=level, chunk_bytes=4096)
    assert recorded.result.stdout == b"unchanged\n"
    kind = {Level.RW: Kind.WRITE, Level.FUNC: Kind.FUNC_EXIT}[level]
    assert len(recorded.of(0, kind)) == len(recorded.of(1, kind)) == 2000


def test_levels_copies_calls_and_breakpoints(folder):
    program = build("marks.c", folder)
    mutex = [Kind.MUTEX_LOCK, Kind.MUTEX_UNLOCK]
    expected = {
        Level.SYNC: (mutex, 2, 0),
        Level.FUNC: ([Kind.FUNC_ENTRY, *mutex, Kind.FUNC_EXIT], 4, 1),
        Level.FUNCLOOP: ([Kind.FUNC_ENTRY, Kind.LOOP_BACK, *mutex, Kind.FUNC_EXIT], 6, 1),
    }
    for level, (kinds, patched, unpatched) in expected.items():
        recorded = record(program, level=level)
        events = recorded.events(0)[1:-1]
        assert list(events["kind"]) == kinds * 2
        assert list(events["call"][np.isin(events["kind"], mutex)]) == [3, 4] * 2
        assert (recorded.page.sites_patched, recorded.page.sites_unpatched) == (patched, unpatched)
        assert recorded.result.code == 0


@pytest.mark.parametrize("threads", [2, 40])
def test_values_of_a_race_make_sense(race, threads):
    recorded = record(race, str(threads), "200", level=Level.RW)
    assert recorded.result.stdout == b"done\n"
    written = {0}
    for thread in range(1, threads + 1):
        accesses = recorded.of(thread, Kind.READ, Kind.WRITE)
        reads, writes = accesses[::2], accesses[1::2]
        assert set(reads["kind"]) == {Kind.READ}
        assert np.array_equal(writes["value"], reads["value"] + 1)
        assert np.all(accesses["after"] > accesses["before"])
        assert np.all(accesses["after"][:-1] <= accesses["before"][1:])
        written |= set(writes["value"].tolist())
    for thread in range(1, threads + 1):
        assert set(recorded.of(thread, Kind.READ)["value"].tolist()) <= written


def test_delays_are_drawn_alike_from_one_seed(race):
    def gaps(knobs):
        return np.diff(record(race, "1", "500", level=Level.RW, knobs=knobs).events(1)["before"])

    knobs = Knobs(seed=7, access_delay_ppm=20_000, delay_us=300)
    plain, *delayed = (gaps(k) for k in (Knobs(), knobs, knobs))
    assert min(gap.sum() for gap in delayed) > 3 * plain.sum()
    longest = [set(np.argsort(gap)[-20:].tolist()) for gap in delayed]
    assert len(longest[0] & longest[1]) >= 5  # by chance: 0 or 1; the machine adds some of its own


def test_handlers_of_signals_log_in_between(folder):
    recorded = record(build("signals.c", folder), level=Level.RW, chunk_bytes=4096)
    assert recorded.result.stdout == b"done\n"
    events = recorded.events(0)[1:-1]
    assert recorded.result.threads["events"][0] == len(events) + 2
    assert np.all(events["after"] > events["before"])  # every access found its end
    mains = events[np.isin(events["site"], (1, 2))]
    assert list(mains["site"]) == [1, 2] * (len(mains) // 2)
    assert np.any(np.isin(events["site"], (3, 4)))
    assert np.array_equal(mains["value"][::2], np.arange(1, len(mains) // 2 + 1))


@pytest.mark.skipif(shutil.which("gdb") is None, reason="no gdb")
def test_a_backtrace_passes_the_trampoline(race, tmp_path):
    page = ControlPage.create(tmp_path / "control", setting(tmp_path / "trace", level=Level.RW))
    environment = f"env LD_PRELOAD={library_path()} RECBULC_CONTROL={page.path}"
    commands = ["set breakpoint pending on", f"set exec-wrapper {environment}", "break rb_probe", "run", "backtrace"]
    gdb = ["gdb", "-nx", "-batch", *(part for command in commands for part in ("-ex", command)), "--args"]
    done = subprocess.run([*gdb, str(race), "1", "1"], capture_output=True, text=True, check=False)
    frames = re.findall(r"^#\d+ .*?(\w+) \(", done.stdout, re.MULTILINE)
    assert frames[:4] == ["rb_probe", "rb_trampoline", "worker", "start_thread"]
