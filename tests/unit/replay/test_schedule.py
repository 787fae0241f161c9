"""Schedules as files."""

import msgspec
import pytest

from recbulc.errors import InputError
from recbulc.recorders.events import Kind
from recbulc.schedule import Access, Op, Part, Schedule, Site, ThreadSchedule, Verdict, load_schedule

SCHEDULE = Schedule(
    program="/home/user/a.out",
    build_id="00ff",
    argv=("./a.out", "--x", "ü"),
    env={"B": "2", "A": "1=1"},
    cwd="/home/user",
    stdin=b"\x00\xff in",
    threads=(
        ThreadSchedule("0", (Op(Kind.CREATE, 1, 0, value=1), Op(Kind.EXIT, -1, 0, waits=((1, 2),), value=1))),
        ThreadSchedule(
            "0.1", (Op(Kind.WRITE, 0, 2, waits=((0, 1),), order=1), Op(Kind.READ, 0, 0, part=Part.BLOCKED)), 1
        ),
    ),
    sites=(Site(4, "BEFORE_WRITE", "f", "a.c", 3, 7, 0), Site(9, "CALL", "main", "a.c", 30, 3, 1)),
    verdict=Verdict("exit", 1, ("exit",), "exit code 1", "0"),
    timeout_s=2.5,
    racing=(Access("a.c", 3, "0.1", "write", 5, "counter"),),
)


def test_a_file_says_it_all_and_can_be_read(tmp_path):
    path = tmp_path / "bug.schedule"
    SCHEDULE.save(path)
    assert load_schedule(path) == SCHEDULE
    lines = path.read_text().splitlines()
    assert sum(line.strip().rstrip(",") == "[4,0,2,[[0,1]],0,0,1,0]" for line in lines) == 1
    assert sum('"line":30' in line for line in lines) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["bug.schedule"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], "damaged"),
        (lambda text: text.replace("[4,0,2,[[0,1]],0,0,1,0]", "[4,0,3,[[0,1]],0,0,1,0]"), "checksum"),
        (lambda text: text.replace('"version": 1', '"version": 7'), "version 7"),
        (lambda text: text.replace("recbulc-schedule", "recbulc-clocks"), "not a schedule"),
        (lambda text: text.replace('"cwd": "/home/user"', '"cwd": 5'), "damaged"),
        (lambda _: "", "damaged"),
        (lambda _: "\x00\x01", "damaged"),
        (lambda _: "[1, 2]", "damaged"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, damage, message):
    path = tmp_path / "bug.schedule"
    SCHEDULE.save(path)
    path.write_text(damage(path.read_text()))
    with pytest.raises(InputError, match=message) as caught:
        load_schedule(path)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("op", "flaw"),
    [
        (Op(Kind.WRITE, 2, 0), "at no site"),
        (Op(Kind.WRITE, 0, 0, waits=((2, 1),)), "waits for none"),
        (Op(Kind.WRITE, 0, 0, waits=((1, 3),)), "waits for none"),
    ],
)
def test_a_schedule_that_points_nowhere_is_refused(tmp_path, op, flaw):
    path = tmp_path / "bug.schedule"
    threads = (ThreadSchedule("0", (op,)), SCHEDULE.threads[1])
    msgspec.structs.replace(SCHEDULE, threads=threads).save(path)
    with pytest.raises(InputError, match=flaw):
        load_schedule(path)


def test_orphans_are_refused():
    threads = (ThreadSchedule("0", ()), ThreadSchedule("0.3.1", ()))
    assert "no parent" in msgspec.structs.replace(SCHEDULE, threads=threads).first_flaw()
    assert "main thread" in msgspec.structs.replace(SCHEDULE, threads=()).first_flaw()


def test_no_file_and_no_place(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        load_schedule(tmp_path / "none")
    with pytest.raises(InputError, match="cannot write"):
        SCHEDULE.save(tmp_path / "none" / "bug.schedule")
