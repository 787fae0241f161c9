"""Interleavings from schedules alone."""

import io
import os

import pytest
from rich.console import Console

from recbulc.recorders.events import Kind
from recbulc.report.columns import interleaving_table, notes_of
from recbulc.report.findings import access_sentence, object_text, racing_sentences, verdict_sentence
from recbulc.report.interleaving import Gap, Mark, interleave
from recbulc.schedule import Access, Op, Part, Schedule, Site, ThreadSchedule, Verdict

SOURCE = """\
long total;
void add(long n) {
    long seen = total; /* unlocked */
    total = seen + n;  // so is this
}
int main(void) {
    return total != 3;
}
"""


def site(number: int, kind: str, line: int, function: str = "add", file: str = "sum.c") -> Site:
    return Site(number, kind, function, file, line, 5, 0)


SITES = (
    site(1, "BEFORE_READ", 3),
    site(2, "BEFORE_WRITE", 4),
    site(3, "CALL", 6, "main"),
    site(4, "BEFORE_READ", 7, "main"),
)


def lost_update(tmp_path, *, racing=True, repeat=0) -> Schedule:
    """Both read, both write; `repeat` rounds of thread 1 stand before."""
    (tmp_path / "sum.c").write_text(SOURCE)
    (tmp_path / "sum").write_text("the program")
    warm = [
        Op(kind, place, i, order=2 * i + place)
        for i in range(repeat)
        for kind, place in ((Kind.READ, 0), (Kind.WRITE, 1))
    ]
    at = 2 * repeat
    one = (*warm, Op(Kind.READ, 0, repeat, order=at + 1), Op(Kind.WRITE, 1, repeat, order=at + 3))
    two = (Op(Kind.READ, 0, 0, order=at + 2), Op(Kind.WRITE, 1, 0, order=at + 4))
    main = (Op(Kind.CREATE, 2, 0, order=-1), Op(Kind.READ, 3, 0, order=at + 5), Op(Kind.EXIT, 2, 0, order=at + 6))
    pair = (
        Access("sum.c", 3, "0.2", "read", 0, "total", "add"),
        Access("sum.c", 4, "0.1", "write", 1, "total", "add"),
    )
    return Schedule(
        program=str(tmp_path / "sum"),
        build_id="",
        argv=("sum",),
        env={},
        cwd=str(tmp_path),
        threads=(ThreadSchedule("0", main), ThreadSchedule("0.1", one), ThreadSchedule("0.2", two)),
        sites=SITES,
        verdict=Verdict("exit", 1, thread="0"),
        timeout_s=10,
        racing=pair if racing else (),
    )


def shown(table) -> str:
    out = io.StringIO()
    Console(file=out, width=120, color_system=None).print(table)
    return out.getvalue()


def test_rows_stand_in_the_order_that_was_found(tmp_path):
    rows = interleave(lost_update(tmp_path)).rows
    assert [(row.thread, row.line) for row in rows] == [(0, 6), (1, 3), (2, 3), (1, 4), (2, 4), (0, 7)]
    assert rows[1].text == "long seen = total;"
    assert rows[3].text == "total = seen + n;"
    assert [row.mark for row in rows] == [Mark.NONE, Mark.NONE, Mark.RACING, Mark.RACING, Mark.NONE, Mark.FAILED]
    assert rows[3].value == 1


def test_consecutive_operations_of_one_line_are_one_row(tmp_path):
    schedule = lost_update(tmp_path)
    two = (Op(Kind.READ, 0, 0, order=10), Op(Kind.READ, 0, 1, order=11), Op(Kind.WRITE, 1, 0, order=12))
    threads = (*schedule.threads[:2], ThreadSchedule("0.2", two))
    fields = {name: getattr(schedule, name) for name in schedule.__struct_fields__}
    rows = interleave(Schedule(**fields | {"threads": threads})).rows
    assert [(row.thread, row.line) for row in rows][-2:] == [(2, 3), (2, 4)]


def test_a_long_one_is_cut_to_what_matters(tmp_path):
    interleaving = interleave(lost_update(tmp_path, repeat=100))
    rows = interleaving.around_the_failure()
    gaps = [row for row in rows if isinstance(row, Gap)]
    assert len(rows) < 20
    assert sum(gap.rows for gap in gaps) + len(rows) - len(gaps) == len(interleaving.rows)
    assert rows[-1] == interleaving.rows[-1]
    assert "more" in shown(interleaving_table(interleaving))


def test_the_columns_for_people(tmp_path):
    text = shown(interleaving_table(interleave(lost_update(tmp_path))))
    assert "exit code 1" in text
    lines = [line for line in text.splitlines() if "total" in line]
    assert lines[0].index("long seen") < lines[1].index("long seen")
    assert "▶" in lines[1]
    assert "[1]" in lines[2]


def test_without_the_source_the_operations_are_named(tmp_path):
    schedule = lost_update(tmp_path)
    (tmp_path / "sum.c").unlink()
    rows = interleave(schedule).rows
    assert all(row.text == "" for row in rows)
    assert rows[1].did == ("read",)
    assert "3 read" in shown(interleaving_table(interleave(schedule)))


def test_a_source_changed_after_the_build_is_said_to_be(tmp_path):
    schedule = lost_update(tmp_path)
    os.utime(tmp_path / "sum", (1, 1))
    assert list(notes_of(interleave(schedule))) == [
        "sum.c was changed after the program was built: the lines shown are those of today"
    ]


def test_the_racing_pair_in_sentences(tmp_path):
    assert racing_sentences(lost_update(tmp_path)) == [
        "racing pair:",
        "  thread 0.2 reads total (= 0) at sum.c:3 in add",
        "  thread 0.1 writes total (= 1) at sum.c:4 in add",
        "  nothing fixes their order; that the failure comes of it is likely, and was not tried",
    ]
    assert racing_sentences(lost_update(tmp_path, racing=False)) == []


def test_a_deadlock_marks_every_blocked_thread(tmp_path):
    schedule = lost_update(tmp_path)
    sites = (site(1, "CALL", 3, "f"), site(2, "CALL", 4, "g"))
    blocked = [Op(Kind.MUTEX_LOCK, place, 0, order=place, part=Part.BLOCKED) for place in (0, 1)]
    fields = {name: getattr(schedule, name) for name in schedule.__struct_fields__} | {
        "sites": sites,
        "threads": tuple(ThreadSchedule(f"0.{i + 1}", (op,)) for i, op in enumerate(blocked)),
        "verdict": Verdict("deadlock", blocked=(("0.1", "MUTEX_LOCK", 0), ("0.2", "MUTEX_LOCK", 1))),
        "racing": (Access("sum.c", 3, "0.1", "lock"), Access("sum.c", 4, "0.2", "lock")),
    }
    deadlock = Schedule(**fields)
    assert [row.mark for row in interleave(deadlock).rows] == [Mark.BLOCKED, Mark.BLOCKED]
    sentences = racing_sentences(deadlock)
    assert sentences[0] == "lock cycle:"
    assert sentences[1] == "  thread 0.1 locks at sum.c:3"
    assert verdict_sentence(deadlock.verdict) == "deadlock: the threads 0.1, 0.2 wait for ever"


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [
        (Verdict("signal", 11, thread="0.2"), "SIGSEGV in thread 0.2"),
        (Verdict("timeout", detail="not finished after 3 s"), "time-out: not finished after 3 s"),
        (Verdict("regex", detail="fix 53,10"), "--fail-if regex met: fix 53,10"),
        (Verdict("deadlock"), "deadlock"),
        (Verdict("passed"), "no failure"),
    ],
)
def test_verdicts_in_words(verdict, sentence):
    assert verdict_sentence(verdict) == sentence


def test_blocks_are_named_by_where_they_were_allocated_and_files_as_seen_from_the_program():
    access = Access("/home/me/src/queue.c", 9, "0.1", "read", 7, "⟨/home/me/src/queue.c:41, 0, 2⟩+16", "take")
    here = "thread 0.1 reads byte 16 of the block of queue.c:41 (= 7) at queue.c:9 in take"
    assert access_sentence(access, "/home/me/src") == here
    assert access_sentence(access, "/home/me/sr") == here.replace("queue.c", "/home/me/src/queue.c")
    assert object_text("⟨stack of 0.1⟩-8") == "⟨stack of 0.1⟩-8"
