"""Names for addresses, resolved offline (DESIGN §4): `symbol+offset`, or ⟨where allocated, thread, nth⟩+offset.

Events carry addresses; the files that were loaded say which symbol lies there, and allocations are events. Nothing that
outlives a run may contain an address.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from recbulc.recorders.events import Kind

STACK_BYTES = 8 << 20  # below a thread's descriptor, or below the end of the address space for the first
STACK_END = 0x7FFF_FFFF_F000  # without randomisation
LOOK_BACK = 16  # blocks of lower addresses that may still hold one, where memory was given out again

Events = npt.NDArray[Any]


@dataclass(frozen=True)
class Module:
    """A loaded file: what is added to its addresses, and its path."""

    base: int
    path: str


@dataclass(frozen=True)
class Symbol:
    """A variable of a module, where it was loaded."""

    address: int
    size: int
    name: str


@dataclass(frozen=True)
class Place:
    """What an address is in: a name that means the same in every run, and how far in it lies."""

    name: str
    offset: int

    def __str__(self) -> str:
        return f"{self.name}{self.offset:+}" if self.offset else self.name


class Blocks:
    """All allocations of a run, to be found by address and time."""

    def __init__(self, threads: Sequence[Events]) -> None:
        made = [np.flatnonzero((events["kind"] == Kind.MALLOC) & (events["object"] != 0)) for events in threads]
        owners = np.concatenate([np.full(len(rows), number) for number, rows in enumerate(made)] or [np.empty(0, int)])
        events = [threads[number][rows] for number, rows in enumerate(made)]
        every = np.concatenate(events) if events else np.empty(0, dtype=[("object", "<u8"), ("before", "<u8")])
        order = np.lexsort((every["before"], every["object"])) if len(every) else np.empty(0, int)
        self._at = every[order]
        self._owner = owners[order]
        self._nth = np.concatenate([_occurrence(part["call"]) for part in events] or [np.empty(0, int)])[order]
        self._starts = self._at["object"]

    def find(self, address: int, stamp: int) -> tuple[int, int, int, int] | None:
        """(thread, CALL site, nth of this thread's there, offset) of the block that `address` was in, if any.

        Of several at one place the last that was made before `stamp`: clocks differ by far less than the time a freed
        block rests before it is given out again.
        """
        found: int | None = None
        last = int(np.searchsorted(self._starts, np.uint64(address), side="right"))
        for row in range(last - 1, max(last - 1 - LOOK_BACK, -1), -1):
            start, size = int(self._at["object"][row]), int(self._at["value"][row])
            if not start <= address < start + max(size, 1):
                continue
            if int(self._at["before"][row]) <= stamp:
                found = row
                break
            found = row if found is None else found
        if found is None:
            return None
        block = self._at[found]
        return int(self._owner[found]), int(block["call"]), int(self._nth[found]), address - int(block["object"])


class Symbols:
    """The variables of all loaded modules."""

    def __init__(self, symbols: Sequence[Symbol]) -> None:
        self._symbols = sorted(symbols, key=lambda symbol: (symbol.address, symbol.size))
        self._addresses = [symbol.address for symbol in self._symbols]

    @classmethod
    def of_modules(cls, modules: Sequence[Module]) -> Symbols:
        """What the files' symbol tables say, as far as they still can be read."""
        return cls([symbol for module in modules for symbol in read_symbols(module)])

    def find(self, address: int) -> Place | None:
        """The variable at `address`."""
        row = bisect_right(self._addresses, address) - 1
        if row < 0:
            return None
        symbol = self._symbols[row]
        inside = address < symbol.address + max(symbol.size, 1)
        return Place(demangled(symbol.name), address - symbol.address) if inside else None


def read_symbols(module: Module) -> list[Symbol]:
    """The variables of one file; none where it is gone or has no table."""
    try:
        with Path(module.path).open("rb") as file:
            tables = [part for part in ELFFile(file).iter_sections() if isinstance(part, SymbolTableSection)]
            table = next((part for part in tables if part.name == ".symtab"), tables[0] if tables else None)
            return [
                Symbol(module.base + symbol["st_value"], symbol["st_size"], symbol.name)
                for symbol in (table.iter_symbols() if table else ())
                if symbol["st_info"]["type"] == "STT_OBJECT" and symbol["st_shndx"] != "SHN_UNDEF"
            ]
    except (OSError, ELFError):
        return []


def demangled(name: str) -> str:
    """A C++ name as it was written; the name itself where it is none, or where there is no C++ library to ask."""
    if not name.startswith("_Z"):
        return name
    library, libc = _cxx_library(), ctypes.CDLL(None)
    if library is None:
        return name
    library.__cxa_demangle.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    status = ctypes.c_int()
    found = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if not found:
        return name
    text = ctypes.string_at(found).decode(errors="replace")
    libc.free(found)
    return text


@cache
def _cxx_library() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL("libstdc++.so.6")
    except OSError:
        return None


def stack_of(address: int, pthreads: Sequence[int]) -> tuple[int, int] | None:
    """(thread, bytes below the top) of the stack that `address` lies on, if any; the first thread's ends the memory."""
    for number, top in enumerate(pthreads):
        end = top if number else STACK_END
        if end - STACK_BYTES <= address < end:
            return number, end - address
    return None


def _occurrence(keys: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """For every element, how many equal ones stand before it."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(keys) else np.empty(0, int)
    counts = np.arange(len(keys)) - np.repeat(first, np.diff(np.append(first, len(keys))))
    result = np.empty(len(keys), dtype=np.int64)
    result[order] = counts
    return result
