"""The compiled schedule: its layout against rb_replay.h, and what is in it."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from recbulc.recorders.events import Kind
from recbulc.replay import compile as compiler
from recbulc.replay.compile import HEADER, NONE, OP, THREAD, WAIT, compile_schedule, last_thread
from recbulc.replay.divergence import Reason
from recbulc.schedule import Op, Part, Schedule, Site, ThreadSchedule, Verdict

ROOT = Path(__file__).parents[3]
STRUCTS = {"header": HEADER, "thread": THREAD, "op": OP, "wait": WAIT}
CONSTANTS = {
    "RB_SCHEDULE_MAGIC": compiler.MAGIC,
    "RB_SCHEDULE_VERSION": compiler.VERSION,
    "RB_SCHEDULE_NONE": compiler.NONE,
    "RB_DIVERGED_EXIT": compiler.DIVERGED_EXIT,
    **{f"RB_PART_{part.name}": part for part in Part},
    **{f"RB_DIVERGED_{reason.name}": reason for reason in Reason if reason != Reason.LACKING},
}


def site(number, line, kind="BEFORE_WRITE"):
    return Site(number, kind, "f", "a.c", line, 5, 0)


def made(threads, sites=(), verdict=None):
    lists = tuple(ThreadSchedule(name, tuple(ops)) for name, ops in threads.items())
    return Schedule(
        program="/bin/true",
        build_id="",
        argv=("true",),
        env={},
        cwd="/",
        threads=lists,
        sites=tuple(sites),
        verdict=verdict or Verdict("exit", 1, thread="0"),
        timeout_s=1.0,
    )


def parts(content):
    header = np.frombuffer(content, HEADER, 1)[0]
    assert header["bytes"] == len(content)
    return (
        header,
        np.frombuffer(content, "<u4", header["nsites"], header["sites_at"]),
        np.frombuffer(content, THREAD, header["nthreads"], header["threads_at"]),
        np.frombuffer(content, OP, header["nops"], header["ops_at"]),
        np.frombuffer(content, WAIT, header["nwaits"], header["waits_at"]),
    )


def test_layout_is_that_of_the_header(tmp_path):
    wanted = {}
    lines = []
    for name, dtype in STRUCTS.items():
        struct = f"struct rb_schedule_{name}"
        lines.append(f'printf("{name} %zu\\n", sizeof({struct}));')
        wanted[name] = dtype.itemsize
        for field, (kind, offset) in dtype.fields.items():
            member = f"(({struct} *)0)->{field}"
            lines.append(f'printf("{name}.{field} %zu\\n", offsetof({struct}, {field}) * 100 + sizeof({member}));')
            wanted[f"{name}.{field}"] = offset * 100 + kind.itemsize
    for name, value in CONSTANTS.items():
        lines.append(f'printf("{name} %llu\\n", (unsigned long long){name});')
        wanted[name] = int(value)
    source = tmp_path / "layout.c"
    source.write_text(
        '#include <stddef.h>\n#include <stdio.h>\n#include "rb_replay.h"\nint main(void){' + "\n".join(lines) + "}"
    )
    program = tmp_path / "layout"
    subprocess.run(["cc", f"-I{ROOT / 'replay/csrc'}", source, "-o", program], check=True)
    told = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    found = {name: int(value) for name, value in (line.split() for line in told.splitlines())}
    assert found == wanted


def test_gates_instances_and_waits():
    write, read = site(40, 1), site(7, 2, "BEFORE_READ")
    one = [Op(Kind.WRITE, 0, 0), Op(Kind.READ, 1, 0), Op(Kind.WRITE, 0, 3, waits=((1, 1),))]
    two = [Op(Kind.WRITE, 0, 0, waits=((0, 1), (0, 2)))]
    header, sites, threads, ops, waits = parts(compile_schedule(made({"0": one, "0.1": two}, [write, read])).content)
    assert sites.tolist() == [7, 40]
    assert header["last"] == 0
    assert [tuple(t) for t in threads] == [(0, 0, 0, 3), (0, 1, 3, 1)]
    assert ops["key"].tolist() == [1, 0, 1, 1]
    assert ops["site"].tolist() == [40, 7, 40, 40]
    assert ops["next"].tolist() == [3, 0, 0, 0]
    assert [waits[i : i + n].tolist() for i, n in zip(ops["first_wait"], ops["nwaits"], strict=True)] == [
        [],
        [],
        [(1, 1)],
        [(0, 1), (0, 2)],
    ]


def test_calls_are_found_by_kind_and_by_where_they_were_made():
    call = site(5, 1, "CALL")
    ops = [Op(Kind.COND_WAIT, 0, 0, part=Part.BEGIN), Op(Kind.COND_WAIT, 0, 0, part=Part.END, value=110)]
    ops += [Op(Kind.MUTEX_LOCK, -1, 4), Op(Kind.COND_WAIT, -1, 1, part=Part.BEGIN)]
    header, sites, _, rows, _ = parts(compile_schedule(made({"0": ops}, [call])).content)
    assert header["nsites"] == len(sites) == 0
    assert rows["key"].tolist() == [Kind.COND_WAIT, Kind.COND_WAIT, Kind.MUTEX_LOCK, Kind.COND_WAIT]
    assert rows["site"].tolist() == [5, 5, 0, 0]
    assert rows["next"].tolist() == [4, 4, 0, 0]  # its second half is no instance of its own
    assert rows["value"].tolist() == [0, 110, 0, 0]


def test_calls_of_a_rebuilt_program_are_counted_by_place():
    here, there = site(5, 1, "CALL"), site(6, 2, "CALL")
    ops = [Op(Kind.MUTEX_LOCK, 0, 0), Op(Kind.MUTEX_LOCK, 1, 1), Op(Kind.MUTEX_LOCK, 0, 2)]
    ops += [Op(Kind.COND_WAIT, 1, 0, part=Part.BEGIN), Op(Kind.COND_WAIT, 1, 0, part=Part.BLOCKED)]
    header, sites, _, rows, _ = parts(compile_schedule(made({"0": ops}, [here, there]), {0: 50, 1: 60}).content)
    assert header["by_place"] == 1
    assert sites.tolist() == [50, 60]
    assert rows["key"].tolist() == [0, 1, 0, 1, 1]
    assert rows["count"].tolist() == [0, 0, 1, 1, 1]
    assert rows["next"].tolist() == [3, 4, 0, 5, 0]


def test_results_and_inputs_keep_their_64_bits():
    ops = [Op(Kind.INPUT, -1, 0, value=2**64 - 1), Op(Kind.INPUT, -1, 1, value=-1), Op(Kind.INPUT, -1, 2, value=2**62)]
    rows = parts(compile_schedule(made({"0": ops})).content)[3]
    assert rows["value"].tolist() == [-1, -1, 2**62]


def test_a_joined_thread_ends_by_an_operation_of_its_own():
    main = [Op(Kind.JOIN, -1, 0, value=1), Op(Kind.JOIN, -1, 1, value=2, part=Part.BLOCKED)]
    lists = compile_schedule(made({"0": main, "0.1": [Op(Kind.WRITE, 0, 0)], "0.2": []}, [site(1, 1)])).lists
    assert [op.kind for op in lists[1]] == [Kind.WRITE, Kind.THREAD_END]
    assert lists[2] == ()


def test_whoever_stood_not_in_the_deadlock_had_ended():
    verdict = Verdict("deadlock", blocked=(("0", "JOIN", -1),))
    blocked = [Op(Kind.JOIN, -1, 0, value=1, part=Part.BLOCKED)]
    lists = compile_schedule(made({"0": blocked, "0.1": [Op(Kind.SEM_POST, -1, 0)]}, verdict=verdict)).lists
    assert [op.kind for op in lists[1]] == [Kind.SEM_POST, Kind.THREAD_END]
    assert [op.kind for op in lists[0]] == [Kind.JOIN]


@pytest.mark.parametrize(
    ("last_op", "verdict", "last"),
    [
        (Op(Kind.SIGNAL, -1, 0), Verdict("signal", 11), 1),
        (Op(Kind.WRITE, 0, 0), Verdict("signal", 11, thread="0.1"), 1),
        (Op(Kind.WRITE, 0, 0), Verdict("timeout", thread="0.1"), NONE),
        (Op(Kind.WRITE, 0, 0), Verdict("exit", 1), NONE),
    ],
)
def test_who_ended_the_run(last_op, verdict, last):
    assert last_thread(made({"0": [], "0.1": [last_op]}, [site(1, 1)], verdict)) == last
