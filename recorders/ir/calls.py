"""Calls and invokes, taken apart."""

from __future__ import annotations

import re
from dataclasses import dataclass

from recbulc.recorders.ir.module import Instruction
from recbulc.recorders.ir.operands import NAME, closing, split_commas, split_typed

_CALLEE = re.compile(rf'\b(?:call|invoke) (?:[^"]|"[^"]*")*?({NAME})\(')
_ASM = re.compile(r' asm (?:sideeffect |alignstack |inteldialect |unwind )*"')


@dataclass(frozen=True, slots=True)
class Call:
    """`callee` is a name: of a function (@), or of a value (%); `open` is where its argument list begins."""

    callee: str
    open: int
    text: str

    @property
    def is_indirect(self) -> bool:
        """Through a pointer?"""
        return self.callee.startswith("%")

    def arguments(self) -> list[tuple[str, str]]:
        """Type and value of each; attributes stand before the value."""
        inner = self.text[self.open + 1 : closing(self.text, self.open)]
        return [split_typed(argument) for argument in split_commas(inner)] if inner else []


def decode_call(instruction: Instruction) -> Call | None:
    """The call that an instruction makes; None for other instructions and inline assembly."""
    if instruction.opcode not in ("call", "invoke", "callbr"):
        return None
    text = instruction.text
    if _ASM.search(text):
        return None
    match = _CALLEE.search(text)
    return Call(match[1], match.end() - 1, text) if match else None


def value_of(argument: str) -> str:
    """The value behind its attributes: `noundef nonnull align 8 %3` is `%3`."""
    if argument.endswith(")") or '"' in argument:
        spaced = " " + argument
        for start in (" getelementptr ", " inttoptr (", " %", " @"):
            place = spaced.find(start)
            if place >= 0:
                return spaced[place + 1 :]
        return argument
    return argument.rpartition(" ")[2]
