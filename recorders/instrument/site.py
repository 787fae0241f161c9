"""A probe site as assembly: five bytes of nop in the code, and an `rb_site` record (csrc/rb_site.h) beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

CODE_BYTES = 20
ATOMIC = 1  # RB_SITE_ATOMIC
NOP = bytes((0x0F, 0x1F, 0x44, 0x00, 0x00))
SITES_SECTION = "recbulc_sites"
OBJECTS_SECTION = "recbulc_objects"

CLOBBERS = "~{memory},~{dirflag},~{fpsr},~{flags}"
OBJECT_LABEL = ".Lrb_object"

_PLAIN_SYMBOL = re.compile(r"[A-Za-z_.][\w.]*$")


class SiteKind(IntEnum):
    """RB_SITE_KINDS of rb_site.h."""

    FUNC_ENTRY = 1
    FUNC_EXIT = 2
    LOOP_ENTRY = 3
    LOOP_BACK = 4
    LOOP_EXIT = 5
    CALL = 6
    BEFORE_READ = 8
    BEFORE_WRITE = 9
    BEFORE_RMW = 10
    AFTER_READ = 12
    AFTER_WRITE = 13
    AFTER_RMW = 14

    @property
    def after(self) -> SiteKind:
        """The kind of the AFTER site that belongs to a BEFORE site."""
        return SiteKind(self + 4)


@dataclass(frozen=True, slots=True)
class Site:
    """A numbered site: what it is and where in the source. `kind` of an access is that of its BEFORE site."""

    number: int
    kind: SiteKind
    size: int
    flags: int
    function: str
    file: str
    line: int
    column: int
    ordinal: int  # counts the sites of this kind, function and line
    is_system: bool  # no frame of it is the user's own code
    ir_line: int  # of the instruction, in the module's text


class SiteAssembler:
    """Writes the inline assembly of the sites of one function."""

    def __init__(self, symbol: str) -> None:
        # the record's section follows the function's own: into its COMDAT group (?), and away with it when the
        # linker collects garbage (o)
        self._head = (
            "771:.byte 0x0f,0x1f,0x44,0,0\\0A"
            f".pushsection {SITES_SECTION},\\22ao?\\22,@progbits,{assembler_name(symbol)}\\0A"
            f".long 771b-.,{OBJECT_LABEL}-.,"
        )

    def mark(self, site: Site) -> str:
        """A site without operands."""
        record = f"{self._head}{site.number}\\0A.byte {int(site.kind)},0,0,0\\0A.zero 20\\0A.popsection"
        return self._call(record, "", "")

    def before(self, site: Site, pointer: str, *, in_register: bool) -> str:
        """The site before an access: its code leaves the address in rdi."""
        if in_register:
            return self._operands(site, site.kind, "leaq ($0),%rdi", "r,", f"ptr {pointer}")
        operand = f"ptr elementtype(i{8 * site.size}) {pointer}"
        return self._operands(site, site.kind, "leaq $0,%rdi", "*m,", operand)

    def after(self, site: Site, value: str | int) -> str:
        """The site after a read or write: `value` is an i64 or a literal."""
        kind = site.kind.after
        if isinstance(value, int):
            move = "movq" if value < 1 << 31 else "movabsq"
            return self._operands(site, kind, f"{move} $${value},%rdi", "", "")
        return self._operands(site, kind, "movq $0,%rdi", "r,", f"i64 {value}")

    def after_rmw(self, site: Site, old: str, new: str) -> str:
        """The site after an atomic read-modify-write, with both values as i64."""
        code = "pushq $0\\0Apushq $1\\0Apopq %rdi\\0Apopq %rsi"
        return self._operands(site, site.kind.after, code, "r,r,", f"i64 {new}, i64 {old}")

    def _operands(self, site: Site, kind: SiteKind, code: str, constraints: str, operands: str) -> str:
        return self._call(
            f"{self._head}{site.number}\\0A.byte {int(kind)},{site.size},{site.flags},773f-772f\\0A"
            f"772:{code}\\0A773:.org 772b+{CODE_BYTES}\\0A.popsection",
            constraints,
            operands,
        )

    @staticmethod
    def _call(assembly: str, constraints: str, operands: str) -> str:
        # no !dbg: a breakpoint on the line must not land on the nop
        return f'  call void asm sideeffect "{assembly}", "{constraints}{CLOBBERS}"({operands})'


def assembler_name(symbol: str) -> str:
    """A function's name (without @) inside the string of an inline assembly."""
    if _PLAIN_SYMBOL.match(symbol):
        return symbol
    return "\\22" + symbol.strip('"').removeprefix("\\01").replace("$", "$$") + "\\22"
