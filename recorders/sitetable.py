"""The sites of a linked program, numbered as the runtime numbers them (csrc/rb_site.h).

Index 0 of every array is "no site". A program that was not built by `recbulc cc` has an empty table.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from recbulc.errors import InputError
from recbulc.recorders.instrument.meta import ID_BYTES, META_SECTION, ObjectMeta, SiteRow, unpack
from recbulc.recorders.instrument.site import OBJECTS_SECTION, SITES_SECTION, SiteKind
from recbulc.schedule import Site as ScheduleSite

OBJECT = np.dtype([("id", f"V{ID_BYTES}"), ("sites", "<u4"), ("pieces", "<i4"), ("unused", "<u4")])
RECORD = np.dtype(
    [
        ("nop", "<i4"),
        ("object", "<i4"),
        ("number", "<u4"),
        ("kind", "u1"),
        ("size", "u1"),
        ("flags", "u1"),
        ("code_len", "u1"),
        ("code", "V20"),
    ]
)

_REBUILD = "build it again with `recbulc cc` or `recbulc c++`"


@dataclass(frozen=True)
class SiteInfo:
    """A place in the program; number 0 is "no site"."""

    number: int
    kind: SiteKind | None
    function: str
    file: str
    line: int
    column: int
    ordinal: int
    is_system: bool

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}" if self.kind is not None else "nowhere"


_NO_SITE = SiteInfo(0, None, "", "", 0, 0, 0, True)


@dataclass(frozen=True)
class SiteTable:
    """All sites of one linked file. Arrays are indexed by site number; `function` and `file` index into the lists."""

    program: Path
    build_id: str  # sha256 of the file
    objects: tuple[ObjectMeta, ...]  # in the order of their numbers
    kind: npt.NDArray[np.uint8]
    size: npt.NDArray[np.uint8]
    flags: npt.NDArray[np.uint8]
    line: npt.NDArray[np.uint32]
    column: npt.NDArray[np.uint32]
    ordinal: npt.NDArray[np.uint32]
    is_system: npt.NDArray[np.bool_]
    object: npt.NDArray[np.uint32]  # index in `objects`
    ir_line: npt.NDArray[np.uint32]  # in that object's IR
    function: npt.NDArray[np.uint32]
    file: npt.NDArray[np.uint32]
    functions: tuple[str, ...]
    files: tuple[str, ...]
    records: npt.NDArray[np.void] = field(repr=False)  # RECORD, as linked
    records_address: int = 0

    def __len__(self) -> int:
        """How many sites there are; the highest number."""
        return len(self.kind) - 1

    def __getitem__(self, number: int) -> SiteInfo:
        """One site."""
        if number == 0:
            return _NO_SITE
        if not 0 < number < len(self.kind):
            raise IndexError(f"{self.program} has {len(self)} sites, there is no number {number}")
        return SiteInfo(
            number,
            SiteKind(int(self.kind[number])),
            self.functions[self.function[number]],
            self.files[self.file[number]],
            int(self.line[number]),
            int(self.column[number]),
            int(self.ordinal[number]),
            bool(self.is_system[number]),
        )

    def schedule_site(self, number: int) -> ScheduleSite:
        """A site as schedules write it down."""
        site = self[number]
        kind = site.kind.name if site.kind is not None else ""
        return ScheduleSite(number, kind, site.function, site.file, site.line, site.column, site.ordinal)

    def find(self, site: ScheduleSite) -> int:
        """The number of a site of another build in this one: same kind, function, file name, line, ordinal; else 0."""
        return self._by_place.get((site.kind, site.function, Path(site.file).name, site.line, site.ordinal), 0)

    @cached_property
    def _by_place(self) -> dict[tuple[str, str, str, int, int], int]:
        names = [Path(file).name for file in self.files]
        kinds = {int(kind): kind.name for kind in SiteKind}
        columns = (self.kind, self.function, self.file, self.line, self.ordinal)
        rows = zip(*(column[1:].tolist() for column in columns), strict=True)
        table: dict[tuple[str, str, str, int, int], int] = {}
        for number, (kind, function, file, line, ordinal) in enumerate(rows, 1):
            table.setdefault((kinds[kind], self.functions[function], names[file], line, ordinal), number)
        return table

    def nop_addresses(self) -> npt.NDArray[np.int64]:
        """Virtual address of the nop of each record."""
        places = self.records_address + RECORD.itemsize * np.arange(len(self.records), dtype=np.int64)
        addresses: npt.NDArray[np.int64] = places + self.records["nop"]
        return addresses


def load_site_table(program: Path) -> SiteTable:
    """Read the table of a linked file."""
    try:
        content = program.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {program}: {error.strerror}", "check the path of the program") from None
    sections: dict[str, tuple[bytes, int]] = {}
    try:
        with program.open("rb") as file:
            elf = ELFFile(file)
            for name in (OBJECTS_SECTION, SITES_SECTION, META_SECTION):
                section = elf.get_section_by_name(name)
                if section is not None:
                    sections[name] = (section.data(), section["sh_addr"])
    except ELFError as error:
        raise InputError(f"{program} is no ELF program ({error})", "name the program itself, not a script") from None
    except Exception as error:  # pyelftools lets whatever it meets in damaged headers through
        raise InputError(f"{program} is a damaged ELF file ({error!r})", _REBUILD) from None
    try:
        return _build(program, hashlib.sha256(content).hexdigest(), sections)
    except (ValueError, IndexError, OverflowError) as error:
        raise InputError(f"the site table of {program} is damaged: {error}", _REBUILD) from None


def _build(program: Path, build_id: str, sections: dict[str, tuple[bytes, int]]) -> SiteTable:
    nothing = (b"", 0)
    linked = np.frombuffer(sections.get(OBJECTS_SECTION, nothing)[0], OBJECT)
    records, records_address = sections.get(SITES_SECTION, nothing)
    try:
        known = {found.meta.id: found for found in unpack(sections.get(META_SECTION, nothing)[0])}
        objects = tuple(known[bytes(row["id"]).hex()] for row in linked)
    except KeyError:
        raise InputError(f"the site table of {program} is missing (stripped?)", _REBUILD) from None
    functions: dict[str, int] = {"": 0}
    files: dict[str, int] = {"": 0}
    blocks = [np.zeros((1, len(SiteRow.__struct_fields__) + 1), np.uint32)]
    blocks[0][0, SiteRow.__struct_fields__.index("is_system")] = 1
    for index, (row, known_object) in enumerate(zip(linked, objects, strict=True)):
        meta = known_object.meta
        if len(meta.sites) != row["sites"]:
            raise InputError(f"the site table of {program} does not fit its code", _REBUILD)
        block = np.empty((len(meta.sites), blocks[0].shape[1]), np.uint32)
        for column, name in enumerate(SiteRow.__struct_fields__):
            block[:, column] = [getattr(site, name) for site in meta.sites]
        for column, (names, numbers) in {3: (meta.functions, functions), 4: (meta.files, files)}.items():
            moved = np.array([numbers.setdefault(name, len(numbers)) for name in names] or [0], np.uint32)
            block[:, column] = moved[block[:, column]]
        block[:, -1] = index
        blocks.append(block)
    table = np.concatenate(blocks)
    if not np.isin(table[1:, 0], list(SiteKind)).all():
        raise ValueError("a site is of no kind")
    columns = {name: table[:, at] for at, name in enumerate((*SiteRow.__struct_fields__, "object"))}
    return SiteTable(
        program=program,
        build_id=build_id,
        objects=objects,
        kind=columns["kind"].astype(np.uint8),
        size=columns["size"].astype(np.uint8),
        flags=columns["flags"].astype(np.uint8),
        line=columns["line"],
        column=columns["column"],
        ordinal=columns["ordinal"],
        is_system=columns["is_system"].astype(bool),
        object=columns["object"],
        ir_line=columns["ir_line"],
        function=columns["function"],
        file=columns["file"],
        functions=tuple(functions),
        files=tuple(files),
        records=np.frombuffer(records, RECORD),
        records_address=records_address,
    )
