"""Sizes of LLVM types in the memory of x86-64."""

from __future__ import annotations

import re

from recbulc.recorders.ir.operands import split_commas, split_typed

POINTER_BYTES = 8
_INTEGER = re.compile(r"i(\d+)$")
_SEQUENCE = re.compile(r"(?:vscale x )?(\d+) x (.*)$", re.S)
_SCALARS = {  # name: (bytes stored, alignment)
    "half": (2, 2),
    "bfloat": (2, 2),
    "float": (4, 4),
    "double": (8, 8),
    "x86_mmx": (8, 8),
    "x86_fp80": (10, 16),
    "fp128": (16, 16),
    "ppc_fp128": (16, 16),
}


class Layout:
    """Sizes under the data layout of x86-64 Linux; `structs` are the module's named types."""

    def __init__(self, structs: dict[str, str]) -> None:
        self._structs = structs
        self._known: dict[str, tuple[int, int]] = {}

    def store_bytes(self, name: str) -> int:
        """Bytes that a load or store of this type touches."""
        return self._measure(name)[0]

    def alloc_bytes(self, name: str) -> int:
        """Distance between two elements of an array of this type."""
        stored, alignment = self._measure(name)
        return -(-stored // alignment) * alignment

    def alignment(self, name: str) -> int:
        """The ABI's alignment."""
        return self._measure(name)[1]

    def _measure(self, name: str) -> tuple[int, int]:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._compute(name)
        return known

    def _compute(self, name: str) -> tuple[int, int]:
        integer = _INTEGER.match(name)
        if integer:
            stored = -(-int(integer[1]) // 8)
            return stored, min(16, 1 << (stored - 1).bit_length())
        if name.startswith("ptr"):
            return POINTER_BYTES, POINTER_BYTES
        if name in _SCALARS:
            return _SCALARS[name]
        if name.startswith("%"):
            return self._measure(self._structs[name])
        if name.startswith("["):
            count, element = self._sequence(name)
            return count * self.alloc_bytes(element), self.alignment(element)
        if name.startswith("<{"):
            return sum(self.alloc_bytes(field) for field in fields_of(name)), 1
        if name.startswith("<"):
            count, element = self._sequence(name)
            stored = -(-count * self.bits(element) // 8)
            return stored, 1 << (stored - 1).bit_length()
        if name.startswith("{"):
            return self._struct(fields_of(name))
        raise ValueError(f"the type {name!r} has no size")

    def bits(self, name: str) -> int:
        """Bits of an element of a vector."""
        integer = _INTEGER.match(name)
        return int(integer[1]) if integer else 8 * self.store_bytes(name)

    def _struct(self, fields: list[str]) -> tuple[int, int]:
        offset, widest = 0, 1
        for field in fields:
            alignment = self.alignment(field)
            offset = -(-offset // alignment) * alignment + self.alloc_bytes(field)
            widest = max(widest, alignment)
        return -(-offset // widest) * widest, widest

    def _sequence(self, name: str) -> tuple[int, str]:
        match = _SEQUENCE.match(name[1:-1])
        if match is None:
            raise ValueError(f"the type {name!r} has no size")
        return int(match[1]), match[2]


def fields_of(struct: str) -> list[str]:
    """The types in `{ i32, ptr }` or `<{ i8, i32 }>`."""
    inner = struct.strip("<>")[1:-1].strip() if struct.startswith("<") else struct[1:-1].strip()
    return split_commas(inner) if inner else []


def element_of(vector: str) -> tuple[int, str]:
    """Count and type of the elements of `<4 x float>` or `[4 x float]`."""
    count, _, element = vector[1:-1].partition(" x ")
    return int(count), split_typed(element + " ")[0]
