"""Instructions that touch memory, taken apart: load, store, atomicrmw, cmpxchg."""

from __future__ import annotations

import re
from dataclasses import dataclass

from recbulc.recorders.ir.module import Instruction
from recbulc.recorders.ir.operands import split_commas, split_typed

_ORDERING = re.compile(r'(?: syncscope\("[^"]*"\))?(?: (?:unordered|monotonic|acquire|release|acq_rel|seq_cst)){1,2}$')
_POINTER = re.compile(r"ptr(?: addrspace\((\d+)\))? ")
_ALIGN = re.compile(r", align (\d+)")


@dataclass(frozen=True, slots=True)
class Pointer:
    """Where an access goes: the value, and its address space (0 but for fs and gs)."""

    value: str
    space: int


@dataclass(frozen=True, slots=True)
class Load:
    """`result = load type, pointer`."""

    type: str
    pointer: Pointer
    align: int
    atomic: bool
    volatile: bool


@dataclass(frozen=True, slots=True)
class Store:
    """`store type value, pointer`."""

    type: str
    value: str
    pointer: Pointer
    align: int
    atomic: bool
    volatile: bool


@dataclass(frozen=True, slots=True)
class ReadModifyWrite:
    """`result = atomicrmw operation pointer, type value`."""

    operation: str
    type: str
    value: str
    pointer: Pointer


@dataclass(frozen=True, slots=True)
class CompareExchange:
    """`result = cmpxchg pointer, type expected, type desired`; the result is { type, i1 }."""

    type: str
    expected: str
    desired: str
    pointer: Pointer


Access = Load | Store | ReadModifyWrite | CompareExchange

OPCODES = frozenset({"load", "store", "atomicrmw", "cmpxchg"})


def decode(instruction: Instruction) -> Access | None:
    """The access that an instruction makes, None if it makes none."""
    if instruction.opcode not in OPCODES:
        return None
    rest = instruction.operands
    align = _ALIGN.search(rest)
    alignment = int(align[1]) if align else 1
    parts = split_commas(rest)
    if instruction.opcode in ("load", "store"):
        atomic = parts[0].startswith("atomic ")
        first = parts[0].removeprefix("atomic ")
        volatile = first.startswith("volatile ")
        first = first.removeprefix("volatile ")
        pointer = _pointer(parts[1])
        if instruction.opcode == "load":
            return Load(first, pointer, alignment, atomic, volatile)
        kind, value = split_typed(first)
        return Store(kind, value, pointer, alignment, atomic, volatile)
    words = parts[0].removeprefix("weak ").removeprefix("volatile ")
    if instruction.opcode == "atomicrmw":
        operation, _, pointed = words.partition(" ")
        kind, value = split_typed(_ORDERING.sub("", parts[1]))
        return ReadModifyWrite(operation, kind, value, _pointer(pointed))
    kind, expected = split_typed(parts[1])
    _, desired = split_typed(_ORDERING.sub("", parts[2]))
    return CompareExchange(kind, expected, desired, _pointer(words))


def _pointer(text: str) -> Pointer:
    match = _POINTER.match(text)
    if match is None:
        raise ValueError(f"no pointer in {text!r}")
    return Pointer(_ORDERING.sub("", text[match.end() :]), int(match[1] or 0))
