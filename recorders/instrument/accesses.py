"""The sites of loads, stores and atomics, and the pieces of what is wider than eight bytes."""

from __future__ import annotations

import re

from recbulc.recorders.instrument.book import SiteBook
from recbulc.recorders.instrument.copies import MemoryIntrinsic, pieces
from recbulc.recorders.instrument.edits import Edits
from recbulc.recorders.instrument.pointers import Pointers
from recbulc.recorders.instrument.site import ATOMIC, Site, SiteAssembler, SiteKind
from recbulc.recorders.ir.memory import Access, CompareExchange, Load, ReadModifyWrite, Store
from recbulc.recorders.ir.module import Instruction
from recbulc.recorders.ir.types import Layout, element_of

_WHOLE = {"i8", "i16", "i32", "i64"}
_FLOATS = {"half": "i16", "bfloat": "i16", "float": "i32", "double": "i64"}
_LITERAL = re.compile(r"-?\d+$")
_UNDEFINED = frozenset({"undef", "poison"})
_COMPARED = {"max": "sgt", "min": "slt", "umax": "ugt", "umin": "ult"}
_PLAIN_OPERATIONS = frozenset({"add", "sub", "and", "or", "xor", "fadd", "fsub"})
_FLOAT_EXTREMES = {"fmax": "ogt", "fmin": "olt"}


class AccessWriter:
    """Writes the accesses of one function."""

    def __init__(
        self, edits: Edits, book: SiteBook, assembler: SiteAssembler, pointers: Pointers, layout: Layout
    ) -> None:
        self._edits = edits
        self._book = book
        self._assembler = assembler
        self._pointers = pointers
        self._layout = layout

    def access(self, instruction: Instruction, access: Access) -> None:
        """Put sites around one instruction, if what it accesses may be shared."""
        if access.pointer.space or self._pointers.is_private(access.pointer.value):
            return
        size = self._layout.store_bytes(access.type)
        if isinstance(access, ReadModifyWrite | CompareExchange):
            if size <= 8:
                self._atomic(instruction, access, size)
        elif access.atomic and size > 8:
            return  # cannot be taken apart, and a record has no room for its value
        elif self._is_whole(access.type, size):
            self._whole(instruction, access, size)
        elif isinstance(access, Load):
            self._split_load(instruction, access, size)
        else:
            self._split_store(instruction, access, size)

    def copy(self, instruction: Instruction, intrinsic: MemoryIntrinsic) -> bool:
        """Open up a memory intrinsic; False when nothing of it may be shared."""
        reads = intrinsic.function != "memset" and not self._pointers.is_private(intrinsic.source)
        writes = not self._pointers.is_private(intrinsic.target)
        if not (reads or writes):
            return False
        loads: list[str] = []
        stores: list[str] = []
        byte = self._spread(intrinsic.source, loads) if intrinsic.function == "memset" else ""
        for offset, size in pieces(intrinsic.size):
            kind = f"i{8 * size}"
            if byte:
                value = self._narrow(byte, kind, loads)
            else:
                value = self._edits.new_name()
                loads += self._piece_load(instruction, intrinsic.source, offset, size, value, sited=reads)
            stores += self._piece_store(instruction, intrinsic.target, offset, size, value, sited=writes)
        self._edits.replace(instruction, "\n".join(loads + stores) if loads or stores else "")
        return True

    def _is_whole(self, kind: str, size: int) -> bool:
        if kind in _WHOLE or kind in _FLOATS or kind.startswith("ptr"):
            return True
        if size not in (1, 2, 4, 8) or not kind.startswith("<") or kind.startswith("<{"):
            return False
        count, element = element_of(kind)
        return not element.startswith("ptr") and count * self._layout.bits(element) == 8 * size

    def _whole(self, instruction: Instruction, access: Load | Store, size: int) -> None:
        edits = self._edits
        is_load = isinstance(access, Load)
        kind = SiteKind.BEFORE_READ if is_load else SiteKind.BEFORE_WRITE
        site = self._book.add(kind, instruction.line, instruction.location, size, ATOMIC if access.atomic else 0)
        text = instruction.text
        if not access.volatile:
            # code generation must neither merge nor drop what was numbered
            place = len(text) - len(instruction.operands) + len("atomic ") * access.atomic
            text = f"{text[:place]}volatile {text[place:]}"
        value = instruction.result if isinstance(access, Load) else access.value
        if value in _UNDEFINED:
            text = text.replace(f"{access.type} {value},", f"{access.type} zeroinitializer,", 1)
            value = "zeroinitializer"
        edits.replace(instruction, text)
        edits.before(instruction, self._before(site, access.pointer.value))
        lines: list[str] = []
        operand = self._as_i64(access.type, value, lines)
        edits.after(instruction, *lines, self._assembler.after(site, operand))

    def _before(self, site: Site, pointer: str) -> str:
        return self._assembler.before(site, pointer, in_register=self._pointers.needs_register(pointer))

    def _as_i64(self, kind: str, value: str, lines: list[str]) -> str | int:
        """The bits of a value as an i64, or as a literal where they are known."""
        if value in ("null", "zeroinitializer"):
            return 0
        if kind in _WHOLE:
            if value in ("true", "false"):
                return int(value == "true")
            if _LITERAL.match(value):
                return int(value) & ((1 << int(kind[1:])) - 1)
            if kind == "i64":
                return value
            return self._cast("zext", kind, value, "i64", lines)
        if kind.startswith("ptr"):
            return self._cast("ptrtoint", kind, value, "i64", lines)
        integer = _FLOATS.get(kind) or f"i{8 * self._layout.store_bytes(kind)}"
        return self._as_i64(integer, self._cast("bitcast", kind, value, integer, lines), lines)

    def _cast(self, opcode: str, kind: str, value: str, to: str, lines: list[str]) -> str:
        name = self._edits.new_name()
        lines.append(f"  {name} = {opcode} {kind} {value} to {to}")
        return name

    def _at(self, pointer: str, offset: int, lines: list[str]) -> str:
        if offset == 0:
            return pointer
        name = self._edits.new_name()
        lines.append(f"  {name} = getelementptr i8, ptr {pointer}, i64 {offset}")
        return name

    def _piece_load(
        self, instruction: Instruction, pointer: str, offset: int, size: int, value: str, *, sited: bool = True
    ) -> list[str]:
        kind = f"i{8 * size}"
        lines: list[str] = []
        address = self._at(pointer, offset, lines)
        load = f"  {value} = load volatile {kind}, ptr {address}, align 1{_dbg(instruction)}"
        if not sited:
            return [*lines, load]
        site = self._book.add(SiteKind.BEFORE_READ, instruction.line, instruction.location, size)
        in_register = self._pointers.needs_register(pointer)
        lines += [self._assembler.before(site, address, in_register=in_register), load]
        operand = self._as_i64(kind, value, lines)
        return [*lines, self._assembler.after(site, operand)]

    def _piece_store(
        self, instruction: Instruction, pointer: str, offset: int, size: int, value: str, *, sited: bool = True
    ) -> list[str]:
        kind = f"i{8 * size}"
        lines: list[str] = []
        address = self._at(pointer, offset, lines)
        store = f"  store volatile {kind} {value}, ptr {address}, align 1{_dbg(instruction)}"
        if not sited:
            return [*lines, store]
        site = self._book.add(SiteKind.BEFORE_WRITE, instruction.line, instruction.location, size)
        in_register = self._pointers.needs_register(pointer)
        lines += [self._assembler.before(site, address, in_register=in_register), store]
        operand = self._as_i64(kind, value, lines)
        return [*lines, self._assembler.after(site, operand)]

    def _split_load(self, instruction: Instruction, access: Load, size: int) -> None:
        """Load pieces, and put them together in the frame."""
        edits = self._edits
        scratch = edits.scratch(size)
        lines: list[str] = []
        for offset, piece in pieces(size):
            value = edits.new_name()
            lines += self._piece_load(instruction, access.pointer.value, offset, piece, value)
            place = self._at(scratch, offset, lines)
            lines.append(f"  store i{8 * piece} {value}, ptr {place}, align {piece}")
        lines.append(f"  {instruction.result} = load {access.type}, ptr {scratch}, align 16{_dbg(instruction)}")
        edits.replace(instruction, "\n".join(lines))

    def _split_store(self, instruction: Instruction, access: Store, size: int) -> None:
        edits = self._edits
        scratch = edits.scratch(size)
        value = "zeroinitializer" if access.value in _UNDEFINED else access.value
        lines = [f"  store {access.type} {value}, ptr {scratch}, align 16"]
        for offset, piece in pieces(size):
            place = self._at(scratch, offset, lines)
            part = edits.new_name()
            lines.append(f"  {part} = load i{8 * piece}, ptr {place}, align {piece}")
            lines += self._piece_store(instruction, access.pointer.value, offset, piece, part)
        edits.replace(instruction, "\n".join(lines))

    def _spread(self, byte: str, lines: list[str]) -> str:
        """The byte of a memset, eight times over."""
        if _LITERAL.match(byte):
            return str((int(byte) & 0xFF) * 0x0101010101010101)
        wide = self._cast("zext", "i8", byte, "i64", lines)
        name = self._edits.new_name()
        lines.append(f"  {name} = mul i64 {wide}, {0x0101010101010101}")
        return name

    def _narrow(self, value: str, kind: str, lines: list[str]) -> str:
        if _LITERAL.match(value):
            return str(int(value) & ((1 << int(kind[1:])) - 1))
        return value if kind == "i64" else self._cast("trunc", "i64", value, kind, lines)

    def _atomic(self, instruction: Instruction, access: ReadModifyWrite | CompareExchange, size: int) -> None:
        site = self._book.add(SiteKind.BEFORE_RMW, instruction.line, instruction.location, size, ATOMIC)
        self._edits.before(instruction, self._before(site, access.pointer.value))
        lines: list[str] = []
        if isinstance(access, CompareExchange):
            old, new = self._exchanged(instruction, access, lines)
        else:
            old, new = instruction.result, self._modified(instruction, access, lines)
        operands = [str(self._as_i64(access.type, value, lines)) for value in (old, new)]
        self._edits.after(instruction, *lines, self._assembler.after_rmw(site, *operands))

    def _exchanged(self, instruction: Instruction, access: CompareExchange, lines: list[str]) -> tuple[str, str]:
        old, done, new = (self._edits.new_name() for _ in range(3))
        pair = f"{{ {access.type}, i1 }} {instruction.result}"
        lines.append(f"  {old} = extractvalue {pair}, 0")
        lines.append(f"  {done} = extractvalue {pair}, 1")
        lines.append(f"  {new} = select i1 {done}, {access.type} {access.desired}, {access.type} {old}")
        return old, new

    def _modified(self, instruction: Instruction, access: ReadModifyWrite, lines: list[str]) -> str:
        """What an atomicrmw leaves in memory."""
        operation, kind, old, value = access.operation, access.type, instruction.result, access.value
        if operation == "xchg":
            return value

        def emit(text: str) -> str:
            name = self._edits.new_name()
            lines.append(f"  {name} = {text}")
            return name

        def choose(condition: str, yes: str, no: str) -> str:
            return emit(f"select i1 {condition}, {kind} {yes}, {kind} {no}")

        if operation in _PLAIN_OPERATIONS:
            return emit(f"{operation} {kind} {old}, {value}")
        if operation == "nand":
            return emit(f"xor {kind} {emit(f'and {kind} {old}, {value}')}, -1")
        if operation in _COMPARED:
            return choose(emit(f"icmp {_COMPARED[operation]} {kind} {old}, {value}"), old, value)
        if operation in _FLOAT_EXTREMES:
            beyond = choose(emit(f"fcmp {_FLOAT_EXTREMES[operation]} {kind} {old}, {value}"), old, value)
            return choose(emit(f"fcmp uno {kind} {value}, {value}"), old, beyond)
        if operation == "uinc_wrap":
            return choose(emit(f"icmp uge {kind} {old}, {value}"), "0", emit(f"add {kind} {old}, 1"))
        if operation == "udec_wrap":
            over = emit(f"icmp ugt {kind} {old}, {value}")
            wraps = emit(f"or i1 {over}, {emit(f'icmp eq {kind} {old}, 0')}")
            return choose(wraps, value, emit(f"sub {kind} {old}, 1"))
        if operation in ("usub_cond", "usub_sat"):
            less = old if operation == "usub_cond" else "0"
            return choose(emit(f"icmp uge {kind} {old}, {value}"), emit(f"sub {kind} {old}, {value}"), less)
        raise ValueError(f"the operation of {instruction.text.strip()!r} is unknown")


def _dbg(instruction: Instruction) -> str:
    return f", !dbg !{instruction.location}" if instruction.location >= 0 else ""
