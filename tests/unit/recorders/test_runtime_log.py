"""What the runtime writes, and what is left of it however a run ends."""

import os
import resource
import signal
import subprocess

import numpy as np
import pytest
from tests.runtime_support import Recorded, build, launch, record, setting, wait_until
from tests.support import X, Y

from recbulc.recorders.control import ControlPage, Level
from recbulc.recorders.events import EVENT, Input, Kind
from recbulc.recorders.runner import Runner
from recbulc.recorders.runtime import library_path

SMALL = 65536


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    return {name: build(f"{name}.c", folder) for name in ("layout", "sync", "race", "ways")}


def test_c_and_numpy_describe_the_same_record(programs):
    rows = [line.split() for line in subprocess.check_output([programs["layout"]], text=True).splitlines()]
    fields = {name: (int(at), int(size)) for struct, name, at, size in rows if struct == "rb_event"}
    assert fields.pop(".") == (EVENT.itemsize, 0)
    assert fields == {name: (EVENT.fields[name][1], EVENT.fields[name][0].itemsize) for name in EVENT.names}
    assert {name: int(number) for what, name, number, _ in rows if what == "kind"} == dict(Kind.__members__)
    assert {name: int(number) for what, name, number, _ in rows if what == "input"} == dict(Input.__members__)


def test_without_a_control_page_the_library_is_inert(programs):
    plain = subprocess.run([programs["sync"]], capture_output=True, check=False)
    environment = os.environ | {"LD_PRELOAD": str(library_path())}
    loaded = subprocess.run([programs["sync"]], capture_output=True, check=False, env=environment)
    assert (loaded.returncode, loaded.stdout, loaded.stderr) == (plain.returncode, plain.stdout, b"")


def test_a_control_page_that_is_none_is_refused(programs, tmp_path):
    (tmp_path / "control").write_bytes(b"\0" * (1 << 20))
    environment = os.environ | {"LD_PRELOAD": str(library_path()), "RECBULC_CONTROL": str(tmp_path / "control")}
    done = subprocess.run([programs["sync"]], capture_output=True, check=False, env=environment)
    assert done.returncode == 125
    assert b"recbulc: the control page is of another version" in done.stderr


def test_recorded_output_is_the_plain_output(programs):
    plain = subprocess.run([programs["sync"]], capture_output=True, check=False)
    recorded = record(programs["sync"])
    assert recorded.page.ready
    assert (recorded.result.how, recorded.result.code) == ("exit", plain.returncode)
    assert (recorded.result.stdout, recorded.result.stderr) == (plain.stdout, b"")


def test_stamps_are_in_program_order(programs):
    recorded = record(programs["sync"])
    for thread in range(recorded.threads):
        events = recorded.events(thread)
        assert events["kind"][0] == Kind.THREAD_START
        assert np.all(np.diff(events["before"].astype(np.int64)) >= 0)
        assert np.all(events["after"] >= events["before"])  # all of it ended
        outermost = events[events["kind"] != Kind.ONCE]  # the routine runs inside of it
        assert np.all(outermost["after"][:-1] <= outermost["before"][1:])
        assert recorded.result.threads["events"][thread] == len(events)


def test_threads_stay_on_their_cores(programs):
    recorded = record(programs["sync"], cores=(Y, X))
    for thread in range(recorded.threads):
        events = recorded.events(thread)
        assert set(events["core"]) == set(events["core_after"]) == {(Y, X)[thread % 2]}


@pytest.mark.parametrize("stamp", ["card", "2c", "2d", "2e"])
def test_every_stamp_can_be_chosen(programs, stamp):
    recorded = record(programs["sync"], stamp=stamp)
    assert set(recorded.events(1)["core"]) == {Y}
    assert np.all(recorded.events(1)["after"] >= recorded.events(1)["before"])


def test_a_killed_process_leaves_what_was_stamped(programs, tmp_path):
    directory = tmp_path / "trace"
    page = ControlPage.create(tmp_path / "control", setting(directory, chunk_bytes=SMALL))
    environment = os.environ | {"LD_PRELOAD": str(library_path()), "RECBULC_CONTROL": str(page.path)}
    with subprocess.Popen([programs["ways"], "for_ever"], env=environment) as process:
        wait_until(lambda: page.threads().size == 2 and page.threads()["events"][0] > 5000)
        process.send_signal(signal.SIGKILL)
    appended = int(page.threads()["events"][0])
    recorded = Recorded(None, page, directory)
    events = recorded.events(0)
    assert len(events) in (appended, appended - 1)  # the last slot was perhaps being filled
    assert np.all(events["after"][:-1] != 0)
    assert recorded.events(1)[-1]["kind"] == Kind.SEM_WAIT
    assert recorded.events(1)[-1]["after"] == 0
    assert page.threads()["state"][1] == 2  # BLOCKED, seen from outside


def test_a_log_that_cannot_grow_ends_with_a_lost_record_and_the_program_goes_on(programs, tmp_path):
    """RLIMIT_FSIZE stands in for a full disk: the next chunk cannot be had."""
    page = ControlPage.create(tmp_path / "control", setting(tmp_path / "trace", level=Level.RW, chunk_bytes=SMALL))
    environment = os.environ | {"LD_PRELOAD": str(library_path()), "RECBULC_CONTROL": str(page.path)}
    done = subprocess.run(
        [programs["race"], "2", "3000"],
        env=environment,
        capture_output=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3 * SMALL + 1, resource.RLIM_INFINITY)),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"done\n", b"")
    recorded = Recorded(None, page, tmp_path / "trace")
    for thread in (1, 2):
        events = recorded.events(thread)
        assert len(events) == 3 * SMALL // EVENT.itemsize
        assert events[-1]["kind"] == Kind.LOST
        assert events[-1]["value"] == 27  # EFBIG
        assert Kind.LOST not in events["kind"][:-1]
    assert list(page.threads()["lost"]) == [0, 1, 1]


def test_a_full_disk(programs, tmp_path):
    """A file system of its own, where we may have one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("may not mount a tmpfs here")
    try:
        page = ControlPage.create(tmp_path / "control", setting(disk / "trace", level=Level.RW, chunk_bytes=SMALL))
        with Runner(launch(programs["race"], "2", "10000")) as runner:
            result = runner.run(page, timeout_s=60)
        assert (result.how, result.code, result.stdout) == ("exit", 0, b"done\n")
        assert list(page.threads()["lost"][1:]) == [1, 1]
        logs = [Recorded(result, page, disk / "trace").events(thread) for thread in (1, 2)]
        lasts = [
            (log[-1]["kind"], log[-1]["value"]) for log in logs if len(log)
        ]  # the disk may be full before the first
        assert set(lasts) == {(Kind.LOST, 28)}  # ENOSPC
    finally:
        subprocess.run(["umount", str(disk)], check=True)
