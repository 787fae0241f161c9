"""Changes to the text of one function: inserted lines, replaced instructions, new blocks."""

from __future__ import annotations

from collections import defaultdict

from recbulc.recorders.ir.module import Function, Instruction


class Edits:
    """Collects changes, then applies them. Values that it names (`%rb.N`) leave clang's own numbering as it is."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._ahead: dict[int, list[str]] = defaultdict(list)
        self._before: dict[int, list[str]] = defaultdict(list)
        self._after: dict[int, list[str]] = defaultdict(list)
        self._texts: dict[int, str] = {}
        self._touched: dict[int, Instruction] = {}
        self._tail: list[str] = []
        self._names = 0
        self._scratch = 0

    def new_name(self) -> str:
        """For a value."""
        self._names += 1
        return f"%rb.{self._names}"

    def scratch(self, size: int) -> str:
        """A place in the frame that is free for the length of one access."""
        self._scratch = max(self._scratch, size)
        return "%rb.scratch"

    def ahead(self, instruction: Instruction, *lines: str) -> None:
        """Before an instruction and all that `before` puts there."""
        self._touched[instruction.line] = instruction
        self._ahead[instruction.line].extend(lines)

    def foremost(self, instruction: Instruction, *lines: str) -> None:
        """Before all that is ahead of an instruction by now."""
        self._touched[instruction.line] = instruction
        self._ahead[instruction.line][:0] = lines

    def before(self, instruction: Instruction, *lines: str) -> None:
        """Directly before an instruction."""
        self._touched[instruction.line] = instruction
        self._before[instruction.line].extend(lines)

    def after(self, instruction: Instruction, *lines: str) -> None:
        """Directly after an instruction."""
        self._touched[instruction.line] = instruction
        self._after[instruction.line].extend(lines)

    def text(self, instruction: Instruction) -> str:
        """An instruction as it is by now."""
        return self._texts.get(instruction.line, instruction.text)

    def replace(self, instruction: Instruction, text: str) -> None:
        """Another text for an instruction."""
        self._touched[instruction.line] = instruction
        self._texts[instruction.line] = text

    def add_block(self, label: str, *lines: str) -> None:
        """A block at the function's end; the label has its sigil."""
        self._tail.append(f"{label[1:]}:")
        self._tail.extend(lines)

    def apply(self, lines: list[str], header: str) -> list[str]:
        """The function's text with all changes, under another header."""
        function = self._function
        if self._scratch:
            first = function.blocks[0].instructions[0]
            self._touched[first.line] = first
            self._ahead[first.line].insert(0, f"  %rb.scratch = alloca [{self._scratch} x i8], align 16")
        out = [header]
        at = function.line + 1
        for line in sorted(self._touched):
            instruction = self._touched[line]
            out.extend(lines[at:line])
            out.extend(self._ahead.get(line, ()))
            out.extend(self._before.get(line, ()))
            out.append(self.text(instruction))
            out.extend(self._after.get(line, ()))
            at = line + instruction.text.count("\n") + 1
        out.extend(lines[at : function.end])
        out.extend(self._tail)
        out.append("}")
        return out
