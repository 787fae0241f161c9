"""The section `.recbulc.meta`: what a person and later stages want to know of an object, and its IR.

Not loaded at run time. The linker puts the sections of all objects one behind the other; each is
MAGIC, length and length (little-endian u32), then the two parts, each compressed by zlib: a JSON document (`Meta`), and
the text of the IR as clang wrote it, before any site was inserted.

Format history:
1: first version.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from recbulc.recorders.instrument.site import Site

META_SECTION = ".recbulc.meta"
MAGIC = b"RBMETA\x00\x01"
ID_BYTES = 12
_LENGTHS = struct.Struct("<II")
_FAST = 3  # of zlib's levels


class SiteRow(msgspec.Struct, array_like=True):
    """A site; function and file are indices into the lists of Meta."""

    kind: int
    size: int
    flags: int
    function: int
    file: int
    line: int
    column: int
    ordinal: int
    is_system: bool
    ir_line: int


class Meta(msgspec.Struct):
    """What is known of one object."""

    id: str
    source: str
    directory: str
    command: list[str]  # as `recbulc cc` was called
    compiler: str
    functions: list[str]
    files: list[str]
    sites: list[SiteRow]


@dataclass(frozen=True)
class ObjectMeta:
    """One object's part of the section."""

    meta: Meta
    packed_ir: bytes

    def ir(self) -> str:
        """The module's text before any site was inserted."""
        try:
            return zlib.decompress(self.packed_ir).decode("utf-8", "surrogateescape")
        except zlib.error as error:
            raise ValueError(f"the IR of {self.meta.source} is damaged: {error}") from error


def object_id(ir: str, command: list[str], directory: str) -> bytes:
    """Names an object: the same for the same IR made by the same command in the same directory."""
    digest = hashlib.sha256(ir.encode("utf-8", "surrogateescape"))
    digest.update("\0".join([directory, *command]).encode("utf-8", "surrogateescape"))
    return digest.digest()[:ID_BYTES]


def pack(
    identity: bytes, sites: list[Site], ir: str, *, source: str, directory: str, command: list[str], compiler: str
) -> bytes:
    """The section of one object."""
    functions: dict[str, int] = {}
    files: dict[str, int] = {}
    rows = [
        SiteRow(
            site.kind,
            site.size,
            site.flags,
            functions.setdefault(site.function, len(functions)),
            files.setdefault(site.file, len(files)),
            site.line,
            site.column,
            site.ordinal,
            site.is_system,
            site.ir_line,
        )
        for site in sites
    ]
    meta = Meta(identity.hex(), source, directory, command, compiler, list(functions), list(files), rows)
    document = zlib.compress(msgspec.json.encode(meta), _FAST)
    packed_ir = zlib.compress(ir.encode("utf-8", "surrogateescape"), _FAST)
    return MAGIC + _LENGTHS.pack(len(document), len(packed_ir)) + document + packed_ir


def unpack(section: bytes) -> Iterator[ObjectMeta]:
    """All objects of a section; ValueError where it is damaged."""
    at = 0
    while True:
        at = section.find(MAGIC, at)  # a linker may pad
        if at < 0:
            return
        at += len(MAGIC)
        if at + _LENGTHS.size > len(section):
            raise ValueError("the section is cut off")
        document, packed_ir = _LENGTHS.unpack_from(section, at)
        at += _LENGTHS.size
        end = at + document + packed_ir
        if end > len(section):
            raise ValueError("the section is cut off")
        try:
            meta = msgspec.json.decode(zlib.decompress(section[at : at + document]), type=Meta)
        except (zlib.error, msgspec.DecodeError) as error:
            raise ValueError(str(error)) from error
        yield ObjectMeta(meta, section[at + document : end])
        at = end
