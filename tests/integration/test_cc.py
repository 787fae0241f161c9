"""`recbulc cc` and `c++` on whole programs: what they do stays as it is, and every access of theirs is an event."""

import os
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.runtime_support import ROOT, record
from tests.support import X, Y, recbulc

from recbulc.recorders.compiler import ENVIRONMENT, find_compiler
from recbulc.recorders.control import Level
from recbulc.recorders.events import Flag, Kind
from recbulc.recorders.instrument.site import SiteKind
from recbulc.recorders.sitetable import load_site_table
from recbulc.recorders.trace import Trace

PROGRAMS = ROOT / "tests/programs/cc"
OPTIMISATIONS = ("-O0", "-O1", "-O2")
C = ("-std=c11", "-D_GNU_SOURCE", "-pthread", "-lm")
CXX = ("-std=c++17", "-pthread")
ACCESSES = (Kind.READ, Kind.WRITE, Kind.RMW)
LEVELS = {
    Level.SYNC: set(),
    Level.FUNC: {Kind.FUNC_ENTRY, Kind.FUNC_EXIT},
    Level.FUNCLOOP: {Kind.FUNC_ENTRY, Kind.FUNC_EXIT, Kind.LOOP_ENTRY, Kind.LOOP_BACK, Kind.LOOP_EXIT},
    Level.RW: {*ACCESSES},
}
OF_SITES = set().union(*LEVELS.values())


def ours(*arguments: str | Path, cxx: bool = False, cwd: Path = ROOT, **environment: str) -> str:
    """Build as a user does; what the compiler said."""
    command = [Path(sys.executable).parent / "recbulc", "c++" if cxx else "cc"]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, cwd=cwd, env=os.environ | environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def plainly(*arguments: str | Path, cxx: bool = False) -> None:
    """The same compiler without us."""
    subprocess.run([*find_compiler().driver(cxx=cxx), *arguments], check=True)


def output_of(program: Path) -> bytes:
    return subprocess.run([program], capture_output=True, check=True, timeout=30).stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """All programs of these tests, at every optimisation: NAME-O1 is ours, NAME.plain-O1 is not."""
    folder = tmp_path_factory.mktemp("cc")
    tasks = []
    with ThreadPoolExecutor(2) as pool:
        for at in OPTIMISATIONS:
            source = PROGRAMS / "language.cpp"
            tasks.append(pool.submit(ours, at, *CXX, source, "-o", folder / f"language.cpp{at}", cxx=True))
            for name in ("language", "events", "count"):
                source = PROGRAMS / f"{name}.c"
                tasks.append(pool.submit(ours, at, source, *C, "-o", folder / f"{name}.c{at}"))
            plain = folder / f"language.c.plain{at}"
            tasks.append(pool.submit(plainly, at, PROGRAMS / "language.c", *C, "-o", plain))
        plain = folder / "language.cpp.plain-O0"  # what it prints does not depend on the optimisation
        tasks.append(pool.submit(plainly, "-O0", *CXX, PROGRAMS / "language.cpp", "-o", plain, cxx=True))
    assert "".join(task.result() or "" for task in tasks) == ""
    for at in OPTIMISATIONS[1:]:
        (folder / f"language.cpp.plain{at}").symlink_to("language.cpp.plain-O0")
    return folder


@pytest.mark.parametrize("at", OPTIMISATIONS)
@pytest.mark.parametrize("name", ["language.c", "language.cpp"])
def test_output_is_that_of_the_plain_build_dormant_and_at_every_level(built, name, at):
    expected = output_of(built / f"{name}.plain{at}")
    assert expected.count(b"\n") > 10
    assert output_of(built / f"{name}{at}") == expected
    for level, kinds in LEVELS.items():
        run = record(built / f"{name}{at}", level=level)
        assert run.result.stdout == expected, level
        assert (run.result.code, run.result.stderr, run.page.sites_unpatched) == (0, b"", 0)
        events = np.concatenate([run.events(thread) for thread in range(run.threads)])
        assert {*events["kind"].tolist()} & OF_SITES == kinds
        assert events["after"].all() or name == "language.cpp"  # exceptions and join at exit leave some open


@pytest.mark.parametrize("level", ["FUNCLOOP", "RW"])
def test_the_command_records_at_a_level(built, tmp_path, level):
    program = str(built / "language.c-O1")
    out = ("--out", str(tmp_path / "trace"), "-q")
    done = recbulc("record", "--level", level, *out, "--", program, cache=tmp_path, cores={X})
    assert done.returncode == 0, done.stderr
    assert done.stdout.encode() == output_of(Path(program))
    trace = Trace.load(tmp_path / "trace")
    assert trace.meta.level == level
    assert {*trace.events[0]["kind"].tolist()} & OF_SITES == LEVELS[Level[level]]
    for event in trace.events[0][np.isin(trace.events[0]["kind"], ACCESSES)]:
        site = trace.sites[int(event["site"])]
        assert SiteKind[site.kind].name == f"BEFORE_{Kind(event['kind']).name}"


def variables(text: bytes) -> list[tuple[str, int, int]]:
    """Name, address and size, as events.c prints them."""
    rows = [line.split() for line in text.decode().splitlines()[:-1]]
    return [(name, int(address, 16), int(size)) for name, address, size in rows]


def accesses(run, known: list[tuple[str, int, int]]) -> list[str]:
    """The accesses to known variables, one line each."""
    addresses = {name: address for name, address, _ in known}
    lines = []
    for event in run.of(0, *ACCESSES):
        where = int(event["object"])
        name, start = next(((n, a) for n, a, size in known if a <= where < a + size), ("", 0))
        if not name:
            continue
        value = int(event["value"])
        shown = next((f"&{n}" for n, a in addresses.items() if a == value), f"{value:#x}")
        old = f" was {int(event['old']):#x}" if event["kind"] == Kind.RMW else ""
        atomic = " atomic" if event["flags"] & Flag.ATOMIC else ""
        assert event["after"] > event["before"] > 0
        lines.append(f"{Kind(event['kind']).name} {name}+{where - start} {event['size']} {shown}{old}{atomic}")
    return lines


SCALARS = """\
WRITE v8+0 1 0xff
READ v8+0 1 0xff
WRITE v16+0 2 0xbeef
READ v16+0 2 0xbeef
WRITE v32+0 4 0xfffffffe
READ v32+0 4 0xfffffffe
WRITE v64+0 8 0xfedcba9876543210
READ v64+0 8 0xfedcba9876543210
WRITE truth+0 1 0x1
READ truth+0 1 0x1
READ single+0 4 0x3fc00000
WRITE single+0 4 0x80000000
WRITE twice+0 8 0x3fb999999999999a
READ twice+0 8 0x3fb999999999999a
WRITE pointer+0 8 &v8
READ pointer+0 8 &v8
READ four+0 8 0x200000001
READ four+8 8 0x400000003
WRITE four+0 8 0x5ffffffff
WRITE four+8 8 0x7fffffffa
WRITE extended+0 8 0x8000000000000000
WRITE extended+8 2 0xbfff
READ extended+0 8 0x8000000000000000
READ extended+8 2 0xbfff
WRITE wide+0 8 0x9
WRITE wide+8 8 0x3
READ wide+0 8 0x9
READ wide+8 8 0x3
WRITE own+0 4 0x8
READ own+0 4 0x8"""
COPIES = """\
READ here+0 8 0x3ff0000000000000
READ here+8 8 0x4000000000000000
READ here+16 8 0x4008000000000000
WRITE there+0 8 0x3ff0000000000000
WRITE there+8 8 0x4000000000000000
WRITE there+16 8 0x4008000000000000
READ odd_from+0 8 0x6867666564636261
READ odd_from+8 4 0x6c6b6a69
READ odd_from+12 1 0x0
WRITE odd_to+0 8 0x6867666564636261
WRITE odd_to+8 4 0x6c6b6a69
WRITE odd_to+12 1 0x0
WRITE there+0 8 0x0
WRITE there+8 8 0x0
WRITE there+16 8 0x0"""
ATOMICS = """\
RMW counter+0 4 0xf was 0xa atomic
RMW counter+0 4 0xc was 0xf atomic
RMW counter+0 4 0xc was 0xc atomic
RMW counter+0 4 0x2d was 0xc atomic
RMW counter+0 4 0x2a was 0x2d atomic
RMW counter+0 4 0xfffffff7 was 0x2a atomic
RMW counter+0 4 0xfffffff7 was 0xfffffff7 atomic
RMW counter+0 4 0x4 was 0xfffffff7 atomic
RMW counter+0 4 0x4 was 0x4 atomic
RMW counter+0 4 0xfffffff8 was 0x4 atomic
RMW word+0 8 0xffffffffffffffff was 0x5 atomic
RMW small+0 1 0xc8 was 0x0 atomic
RMW small+0 1 0x7 was 0xc8 atomic
RMW word+0 8 0x6 was 0xffffffffffffffff atomic
RMW word+0 8 0x6 was 0x6 atomic
RMW word+0 8 0x8 was 0x6 atomic
WRITE place+0 8 &text atomic
READ place+0 8 &text atomic
READ text+0 1 0x74"""
POINTED = """\
WRITE block+4 4 0xc
READ hidden+0 4 0x3
READ local+0 4 0x28
WRITE local+0 4 0x2b"""


@pytest.fixture(scope="module", params=OPTIMISATIONS)
def known_accesses(request, built):
    """The run of events.c, and its lines."""
    run = record(built / f"events.c{request.param}", level=Level.RW)
    assert run.result.code == 0
    # clang reads *(*at)++ in either order: hidden and local
    return run, "\n".join(accesses(run, variables(run.result.stdout)))


@pytest.mark.parametrize("expected", [SCALARS, COPIES, ATOMICS], ids=["scalars", "copies", "atomics"])
def test_every_access_is_an_event_with_address_size_and_values(known_accesses, expected):
    assert expected in known_accesses[1]


def test_accesses_by_pointer_bitfield_and_string_function(known_accesses):
    lines = known_accesses[1].splitlines()
    assert {*POINTED.splitlines()} <= {*lines}
    bits = [line for line in lines if "bits" in line]
    assert [line.split()[0] for line in bits] == ["READ", "WRITE"]
    assert bits[1].split()[3] == "0xabc0"
    text = [line.split() for line in lines if line.startswith("WRITE text")]
    written = b"".join(int(value, 16).to_bytes(int(size), "little") for _, _, size, value in text)
    assert written == b"tear\0"  # strcpy, or the memcpy that clang makes of it
    assert not [line for line in lines if "constant" in line]  # nobody can change it


def test_a_torn_copy_can_be_expressed(known_accesses, built):
    """Each piece of a copy is an access of its own, with stamps of its own; long copies run in our own memcpy."""
    run, _ = known_accesses
    (where,) = (address for name, address, _ in variables(run.result.stdout) if name == "large_to")
    copied = [e for e in run.of(0, Kind.WRITE) if where <= e["object"] < where + 100]
    assert [int(e["object"]) - where for e in copied] == [*range(0, 96, 8), 96, 97, 98, 99] or (
        [int(e["object"]) - where for e in copied] == [*range(0, 96, 8), 96]
    )
    data = b"".join(int(e["value"]).to_bytes(int(e["size"]), "little") for e in copied)
    assert data == bytes(range(100))
    stamps = [int(stamp) for e in copied for stamp in (e["before"], e["after"])]
    assert stamps == sorted(stamps)
    (start,) = (address for name, address, _ in variables(run.result.stdout) if name == "there")
    sites = [int(e["site"]) for e in run.of(0, Kind.WRITE) if start <= e["object"] < start + 24]
    assert len({*sites}) == len(sites) == 6  # two copies of three pieces: six places to be stopped at


@pytest.mark.parametrize("at", OPTIMISATIONS)
def test_a_counter_under_a_lock_has_the_events_of_its_source(built, at):
    """As many reads and writes as the source makes, in one chain of values, at every optimisation."""
    program = built / f"count.c{at}"
    run = record(program, level=Level.RW)
    first, last = run.result.stdout.decode().splitlines()
    assert last == "100 1225 1225"
    counter = int(first.split()[0], 16)
    table = load_site_table(program)
    chain = []
    for thread in (1, 2):
        events = run.of(thread, Kind.READ, Kind.WRITE)
        own = events[events["object"] == counter]
        assert own["kind"].tolist() == [Kind.READ, Kind.WRITE] * 50
        assert (own["value"][1::2] == own["value"][::2] + 1).all()
        assert {table[int(site)].line for site in own["site"]} == {17}
        chain += own["value"][1::2].tolist()
    assert sorted(chain) == list(range(1, 101))


def shared_accesses(target: Path) -> dict[str, list[str]]:
    """The variables that each function's instructions name, in their order."""
    text = subprocess.run(["objdump", "-dr", "-j", ".text", target], capture_output=True, text=True, check=True).stdout
    found = {}
    for body in re.split(r"^[0-9a-f]+ <", text, flags=re.M)[1:]:
        code = [line.partition("\t")[2] for line in body.splitlines()]
        found[body.partition(">")[0]] = [
            re.sub(r"-0x\w+|\+0x\w+", "", after.split()[-1])
            for line, after in pairwise(code)
            if "R_X86_64_PC32" in after and not line.startswith("R_")
        ]
    return found


def test_the_machine_code_accesses_memory_as_often_as_the_ir(tmp_path):
    """Nothing that has a site is merged, narrowed, reordered or dropped, however well the code is optimised."""
    target = tmp_path / "repeated.o"
    # passes off: the IR keeps what only code generation is left to merge
    options = ("-O2", "-fPIE", "-Xclang", "-disable-llvm-passes", "-c", PROGRAMS / "repeated.c", "-o", target)
    plainly(*options)
    merged = shared_accesses(target)
    assert (merged["reads"], merged["writes"], merged["forwarded"]) == (["x"], ["x"], ["x"])
    ours(*options)
    assert shared_accesses(target) == {
        "reads": ["x"] * 3,
        "writes": ["x"] * 3,
        "forwarded": ["x"] * 2,
        "narrow": ["bytes"] * 4,
        "same": ["y"] * 2,
        "copied": ["from", "from", "to", "to"] * 2,
        "unused": ["x"],
        "atomics": ["counter"] * 4,
    }


@pytest.mark.parametrize("how", ["objects", "archive", "shared"])
def test_programs_of_several_files(built, tmp_path, how):
    sources = [str(PROGRAMS / "part.c"), str(PROGRAMS / "uses_part.c")]
    ours("-O1", "-fPIC", "-c", *sources, cwd=tmp_path)
    if how == "archive":
        subprocess.run(["ar", "rcs", "libpart.a", "part.o"], cwd=tmp_path, check=True)
    elif how == "shared":
        ours("-shared", "part.o", "-o", "libpart.so", cwd=tmp_path)
    link = ["part.o"] if how == "objects" else ["-L.", "-lpart", f"-Wl,-rpath,{tmp_path}"]
    ours("uses_part.o", *link, "-o", "prog", cwd=tmp_path)
    expected = output_of(tmp_path / "prog")
    assert expected == b"310 106 partpar\n"
    for level in (Level.FUNCLOOP, Level.RW):
        run = record(tmp_path / "prog", level=level)
        assert run.result.stdout == expected
        assert run.page.sites_unpatched == 0
    first = load_site_table(tmp_path / "prog")
    tables = [first, load_site_table(tmp_path / "libpart.so")] if how == "shared" else [first]
    names = [Path(table[site].file).name for table in tables for site in range(1, len(table) + 1)]
    assert {"part.c", "uses_part.c"} <= {*names}
    writes = run.of(0, Kind.WRITE)
    written = [names[int(site) - 1] for site in writes["site"]]  # modules count on from one another
    assert written.count("part.c") >= 3
    values = [int(e["value"]) for e, name in zip(writes, written, strict=True) if name == "part.c" and e["size"] == 8]
    assert [value for value in values if value in (101, 103, 106)] == [101, 103, 106]


@pytest.mark.parametrize("fortified", [(), ("-D_FORTIFY_SOURCE=2",)], ids=["plain", "fortified"])
def test_our_string_functions_do_what_libcs_do(tmp_path, fortified):
    program = tmp_path / "strings"
    ours("-O1", "-fno-builtin", *fortified, "-D_GNU_SOURCE", "-w", PROGRAMS / "strings.c", "-o", program)
    for level in (Level.SYNC, Level.RW):  # dormant, and in pieces
        run = record(program, "seven..", level=level)
        assert run.result.stdout == b"0 differences\nseven..\n"
    table = load_site_table(program)
    functions = {table[int(site)].function for site in {*run.of(0, Kind.WRITE)["site"].tolist()}}
    assert {"__rb_memcpy", "__rb_memset", "__rb_strncpy", "__rb_strncat"} <= functions
    assert ("__rb___stpcpy_chk" in functions) == bool(fortified)
    if fortified:
        for level in (Level.SYNC, Level.RW):
            run = record(program, "too long", level=level)
            assert (run.result.how, run.result.code) == ("signal", signal.SIGABRT)
            assert b"buffer overflow detected" in run.result.stderr


@pytest.mark.parametrize("name", ["clang-16", "clang-19", "clang"])
def test_other_clangs(name, tmp_path):
    """Those that are installed beside the one that the other tests use."""
    if shutil.which(name) is None or Path(find_compiler().command[0]).name == name:
        pytest.skip(f"no other {name}")
    program = tmp_path / "events"
    ours("-O1", PROGRAMS / "events.c", *C, "-o", program, **{ENVIRONMENT: name})
    run = record(program, level=Level.RW)
    assert SCALARS in "\n".join(accesses(run, variables(run.result.stdout)))


def test_every_thread_of_a_program_is_pinned_and_has_its_log(built):
    run = record(built / "language.cpp-O1", level=Level.RW, cores=(X, Y))
    assert run.threads == 6  # main, three consumers, two of std::async
    assert all(len(run.of(thread, *ACCESSES)) for thread in range(run.threads))
