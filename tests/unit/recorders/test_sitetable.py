"""The sites of linked files, and files that are damaged, stripped or not ours."""

import random
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from recbulc.errors import InputError
from recbulc.recorders import build
from recbulc.recorders.instrument.meta import MAGIC, META_SECTION, ObjectMeta, object_id, pack, unpack
from recbulc.recorders.instrument.site import NOP, OBJECTS_SECTION, SITES_SECTION, Site, SiteKind
from recbulc.recorders.sitetable import load_site_table

ONE = """int shared;
int twice(int n)
{
    for (int i = 0; i < n; i++)
        shared = shared * 3 + i;
    return shared;
}
"""
TWO = "int twice(int);\nint other;\nint main(void) { other = twice(3); return 0; }\n"


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sites")
    (folder / "one.c").write_text(ONE)
    (folder / "two.c").write_text(TWO)
    sources = [str(folder / "one.c"), str(folder / "two.c")]
    assert build.run_compiler(["-O1", *sources, "-o", str(folder / "prog")], cxx=False) == 0
    return folder / "prog"


def section_of(path: Path, name: str) -> tuple[int, int]:
    """Where in the file a section is, and its size."""
    with path.open("rb") as file:
        section = ELFFile(file).get_section_by_name(name)
        return section["sh_offset"], section["sh_size"]


def test_sites_are_named_by_source_line(program):
    table = load_site_table(program)
    places = [
        (site.kind.name, site.function, Path(site.file).name, site.line)
        for site in map(table.__getitem__, range(1, len(table) + 1))
    ]
    assert places[0] == ("FUNC_ENTRY", "twice", "one.c", 2)
    assert ("BEFORE_READ", "twice", "one.c", 6) in places
    assert ("LOOP_BACK", "twice", "one.c", 4) in places
    assert ("BEFORE_WRITE", "main", "two.c", 3) in places
    assert [Path(found.meta.source).name for found in table.objects] == ["one.c", "two.c", "rb_string.c"]
    assert {site[1] for site in places if site[2] == "rb_string.c"} >= {"__rb_memcpy", "__rb_strcpy"}
    assert all(table[number].is_system for number in range(1, len(table) + 1) if "rb_string" in table[number].file)
    assert (table[0].kind, str(table[0])) == (None, "nowhere")
    with pytest.raises(IndexError):
        table[len(table) + 1]


def test_the_ir_comes_with_it(program):
    table = load_site_table(program)
    number = next(n for n in range(1, len(table) + 1) if table[n].kind == SiteKind.BEFORE_WRITE)
    lines = table.objects[table.object[number]].ir().split("\n")
    assert lines[table.ir_line[number]].lstrip().startswith("store i32")


def test_records_point_at_nops_and_every_site_has_one(program):
    table = load_site_table(program)
    with program.open("rb") as file:
        segments = [s for s in ELFFile(file).iter_segments() if s["p_type"] == "PT_LOAD" and s["p_flags"] & 1]
        code = {s["p_vaddr"]: s.data() for s in segments}
    for address in table.nop_addresses().tolist():
        ((start, text),) = [(start, text) for start, text in code.items() if start <= address < start + len(text)]
        assert text[address - start : address - start + 5] == NOP
    records = table.records
    owners = np.arange(len(records)) * records.itemsize + 4 + records["object"]
    distinct = {*zip(owners.tolist(), records["number"].tolist(), records["kind"].tolist(), strict=True)}
    accesses = np.isin(table.kind, [SiteKind.BEFORE_READ, SiteKind.BEFORE_WRITE, SiteKind.BEFORE_RMW]).sum()
    assert len(distinct) == len(table) + accesses  # an access has a record before and one behind it


def test_sites_of_a_rebuilt_program_are_found_by_their_place(program, tmp_path):
    (tmp_path / "one.c").write_text(ONE)
    (tmp_path / "two.c").write_text("/* moved */ " + TWO)
    sources = [str(tmp_path / "two.c"), str(tmp_path / "one.c")]
    assert build.run_compiler(["-O1", *sources, "-o", str(tmp_path / "prog")], cxx=False) == 0
    old, new = load_site_table(program), load_site_table(tmp_path / "prog")
    assert old.build_id != new.build_id
    for number in range(1, len(old) + 1):
        found = new[new.find(old.schedule_site(number))]
        site = old[number]
        assert (found.kind, found.function, found.line, found.ordinal) == (
            site.kind,
            site.function,
            site.line,
            site.ordinal,
        )
    assert new.find(old.schedule_site(0)) == 0


def test_programs_that_are_not_ours_have_no_sites(tmp_path):
    for path in (Path("/bin/true"), Path("/bin/sh")):
        table = load_site_table(path)
        assert len(table) == 0
        assert table[0].kind is None
    strange = tmp_path / "strange"
    content = bytearray(Path("/bin/true").read_bytes())
    content[18:20] = struct.pack("<H", 183)  # another machine
    strange.write_bytes(content)
    assert len(load_site_table(strange)) == 0


def test_files_that_are_no_programs(tmp_path):
    script = tmp_path / "script"
    for content in (b"", b"#!/bin/sh\n", b"\x7fELF", b"\x7fELF\x02\x01\x01" + bytes(9)):
        script.write_bytes(content)
        with pytest.raises(InputError, match="ELF") as caught:
            load_site_table(script)
        assert caught.value.exit_code == 2
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(InputError, match="cannot read"):
            load_site_table(path)


def test_stripped_programs(program, tmp_path):
    for options, has_meta in (
        (["--strip-debug"], True),
        (["--strip-all"], True),
        (["--remove-section", META_SECTION], False),
    ):
        stripped = tmp_path / "stripped"
        subprocess.run(["strip", *options, program, "-o", stripped], check=True)
        if has_meta:
            assert len(load_site_table(stripped)) == len(load_site_table(program))
        else:
            with pytest.raises(InputError, match=r"missing \(stripped\?\)"):
                load_site_table(stripped)


@pytest.mark.parametrize("name", [META_SECTION, OBJECTS_SECTION])
def test_damage_anywhere_is_one_sentence(program, tmp_path, name):
    """Whatever byte is wrong, there is a table or an InputError; never anything else."""
    offset, size = section_of(program, name)
    content = program.read_bytes()
    rng = random.Random(7)
    damaged = tmp_path / "damaged"
    remedies = []
    for _ in range(100):
        at = offset + rng.randrange(size)
        damaged.write_bytes(content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :])
        try:
            load_site_table(damaged)
        except InputError as error:
            remedies.append(error.remedy)
    assert remedies
    assert all("recbulc cc" in remedy for remedy in remedies)


def test_cut_off_files(program, tmp_path):
    content = program.read_bytes()
    cut = tmp_path / "cut"
    for part in range(1, 20):
        cut.write_bytes(content[: len(content) * part // 20])
        with pytest.raises(InputError):
            load_site_table(cut)


def a_site(**changes) -> Site:
    known = {"number": 0, "kind": SiteKind.CALL, "size": 0, "flags": 0, "function": "f", "file": "/a.c", "line": 1}
    return Site(**(known | {"column": 2, "ordinal": 0, "is_system": False, "ir_line": 3} | changes))


def packed(name: bytes = b"", ir: str = "define …\udcff\n", sites: tuple = (a_site(),)) -> bytes:
    return pack(
        object_id(ir, ["cc", name.decode()], "/"),
        [*sites],
        ir,
        source="a.c",
        directory="/",
        command=["cc"],
        compiler="clang",
    )


def test_meta_comes_back_also_with_padding_between():
    first, second = unpack(packed(b"1") + bytes(13) + packed(b"2", sites=()))
    assert (first.meta.source, first.meta.functions, first.meta.files) == ("a.c", ["f"], ["/a.c"])
    assert first.ir() == "define …\udcff\n"
    assert first.meta.id != second.meta.id
    assert second.meta.sites == []
    with pytest.raises(ValueError, match=r"the IR of a\.c is damaged"):
        ObjectMeta(first.meta, first.packed_ir[:-1]).ir()


@pytest.mark.parametrize(
    "section",
    [
        MAGIC,
        MAGIC + bytes(7),
        packed()[:-1],
        MAGIC + struct.pack("<II", 3, 0) + b"abc",
        MAGIC + struct.pack("<II", len(zlib.compress(b"{}")), 0) + zlib.compress(b"{}"),
        MAGIC + struct.pack("<II", 1 << 31, 1 << 31),
    ],
    ids=["nothing", "cut header", "cut end", "not compressed", "no meta", "too long"],
)
def test_damaged_meta(section):
    with pytest.raises(ValueError, match=r"."):
        list(unpack(section))


def test_objects_with_sites_in_sections_of_their_own(program, tmp_path):
    """Functions that the linker drops take their records along."""
    source = tmp_path / "part.c"
    source.write_text("int x;\nvoid unused(void) { x = 1; }\nint main(void) { x = 2; return 0; }\n")
    options = ["-O1", "-ffunction-sections", "-Wl,--gc-sections", str(source), "-o", str(tmp_path / "prog")]
    assert build.run_compiler(options, cxx=False) == 0
    table = load_site_table(tmp_path / "prog")
    here = np.arange(len(table.records)) * table.records.itemsize + 4 + table.records["object"]  # of its rb_object
    first = table.records[here == here[0]]
    lines = {table[int(record["number"]) + 1].function for record in first}
    assert lines == {"main"}
    assert section_of(tmp_path / "prog", SITES_SECTION)[1] == table.records.nbytes
