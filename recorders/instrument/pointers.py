"""What a pointer may point to: memory that no other thread can reach, the frame, or anything.

An access is *possibly shared* unless it goes to an alloca whose address is used for nothing but accesses, or to a
constant. Everything else gets a site: either all accesses of an object are recorded or none.
"""

from __future__ import annotations

import re

from recbulc.recorders.instrument.copies import PIECES, is_inlined
from recbulc.recorders.ir.calls import decode_call
from recbulc.recorders.ir.memory import CompareExchange, ReadModifyWrite, Store, decode
from recbulc.recorders.ir.module import Function, Instruction, Module
from recbulc.recorders.ir.operands import LOCAL, split_commas

_GLOBAL = re.compile(r'@(?:[-\w$.]+|"[^"]*")')
_CHAIN = frozenset({"getelementptr", "bitcast", "addrspacecast", "freeze"})
_MERGE = frozenset({"phi", "select"})
_HARMLESS_CALLS = ("@llvm.lifetime.", "@llvm.dbg.", "@llvm.invariant.")
_KEEPS_NOTHING = frozenset({"alloca", "load", "icmp", "br"})


class Pointers:
    """Answers for one function."""

    def __init__(self, module: Module, function: Function) -> None:
        self._globals = module.globals
        self._definitions: dict[str, Instruction] = {}
        self._frame: set[str] = set()
        self._integers: set[str] = set()
        self._roots: dict[str, frozenset[str]] = {}
        for parameter in function.parameters():
            if "byval(" in parameter:
                self._frame.add("%" + parameter.rpartition(" %")[2])
        for instruction in function.instructions():
            opcode = instruction.opcode
            if opcode == "alloca":
                self._frame.add(instruction.result)
            elif opcode == "inttoptr" or "invariant.group(" in instruction.text:
                self._integers.add(instruction.result)
            elif opcode in _CHAIN or opcode in _MERGE or "@llvm.threadlocal.address" in instruction.text:
                self._definitions[instruction.result] = instruction
        self._private = self._frame - self._escaping(function) if self._frame else set()

    def is_private(self, pointer: str) -> bool:
        """Can no other thread change what is there?"""
        roots = self._roots_of(pointer)
        return bool(roots) and all(
            root in self._private
            or root == PIECES
            or (root in self._globals and self._globals[root].kind == "constant")
            for root in roots
        )

    def needs_register(self, pointer: str) -> bool:
        """May its address be one relative to rsp or fs, which a record's code must not contain?"""
        return any(
            root in self._frame
            or root in self._integers  # of the frame's address, perhaps
            or (root in self._globals and self._globals[root].thread_local)
            for root in self._roots_of(pointer)
        )

    def _roots_of(self, pointer: str) -> frozenset[str]:
        """Where a pointer comes from: allocas, globals, other values; nothing for what is no name at all."""
        known = self._roots.get(pointer)
        if known is not None:
            return known
        roots: set[str] = set()
        seen = {pointer}
        todo = [pointer]
        while todo:
            value = todo.pop()
            if not value.startswith("%"):
                roots.update(_GLOBAL.findall(value)[:1])
            elif value in self._definitions:
                sources = set(self._sources(self._definitions[value])) - seen
                seen |= sources
                todo.extend(sources)
            else:
                roots.add(value)
        self._roots[pointer] = found = frozenset(roots)
        return found

    @staticmethod
    def _sources(instruction: Instruction) -> list[str]:
        text = instruction.text
        if instruction.opcode == "phi":
            return [part.partition("[ ")[2].rpartition(", %")[0] for part in split_commas(text) if "[ " in part]
        parts = split_commas(instruction.operands)
        if instruction.opcode == "select":
            return [part.removeprefix("ptr ") for part in parts[1:3]]
        if instruction.opcode == "getelementptr":
            return [parts[1].removeprefix("ptr ")]
        if instruction.opcode == "call":
            return _GLOBAL.findall(text)[1:2]
        return [parts[0].partition(" ")[2].partition(" to ")[0]]

    def _escaping(self, function: Function) -> set[str]:
        """Frame objects whose address goes anywhere but into accesses."""
        escaping: set[str] = set()
        for instruction in function.instructions():
            for name in LOCAL.findall(_captured(instruction)):
                if name in self._frame:
                    escaping.add(name)
                elif name in self._definitions:
                    escaping |= self._roots_of(name) & self._frame
        return escaping


def _captured(instruction: Instruction) -> str:
    """The part of an instruction's text whose names it may keep, hand on or merge with others."""
    opcode, text = instruction.opcode, instruction.text
    if opcode in _KEEPS_NOTHING or opcode in _CHAIN or " %" not in text:
        return ""
    if opcode == "call":
        if any(name in text for name in _HARMLESS_CALLS):
            return ""
        call = decode_call(instruction)
        return "" if call is not None and is_inlined(call) else text
    access = decode(instruction)
    if isinstance(access, Store | ReadModifyWrite):
        return access.value
    if isinstance(access, CompareExchange):
        return f"{access.expected} {access.desired}"
    return text
