"""The sites of loops, which stand on edges: LOOP_ENTRY, LOOP_BACK, LOOP_EXIT."""

from __future__ import annotations

import re
from collections import defaultdict

from recbulc.recorders.instrument.book import SiteBook
from recbulc.recorders.instrument.edits import Edits
from recbulc.recorders.instrument.site import SiteAssembler, SiteKind
from recbulc.recorders.ir.cfg import Flow, Loop
from recbulc.recorders.ir.module import Block, Function, Instruction, Module
from recbulc.recorders.ir.operands import split_commas

_LOOP = re.compile(r", !llvm\.loop !(\d+)")
_REFERENCE = re.compile(r"!(\d+)")
_SPLITTABLE = frozenset({"br", "switch", "invoke"})


def write_loops(module: Module, function: Function, edits: Edits, book: SiteBook, assembler: SiteAssembler) -> None:
    """Put sites on all edges that enter, repeat or leave a natural loop."""
    if len(function.blocks) == 1:
        return
    flow = Flow(function)
    wanted: dict[tuple[int, int], list[tuple[SiteKind, Loop]]] = defaultdict(list)
    loops = flow.loops()
    for loop in loops:  # inner loops first: the innermost is left first
        for source in sorted(loop.blocks):
            for target in flow.successors[source]:
                if target not in loop.blocks:
                    wanted[source, target].append((SiteKind.LOOP_EXIT, loop))
    for loop in reversed(loops):
        for source in flow.predecessors[loop.header]:
            kind = SiteKind.LOOP_BACK if source in loop.blocks else SiteKind.LOOP_ENTRY
            wanted[source, loop.header].append((kind, loop))
    for (source, target), marks in sorted(wanted.items()):
        place = _Edge(function, flow, source, target, edits)
        if place.is_usable:
            lines = []
            for kind, loop in marks:
                header = function.blocks[loop.header]
                location = _start(module, function, loop)
                lines.append(assembler.mark(book.add(kind, header.instructions[0].line, location)))
            place.insert(lines)


def _start(module: Module, function: Function, loop: Loop) -> int:
    """Debug location where a loop begins: what clang notes in its latch, else its header's first."""
    for index in loop.blocks:
        note = _LOOP.search(function.blocks[index].terminator.text)
        if note and function.blocks[loop.header].label in function.blocks[index].terminator.successors():
            references = _REFERENCE.findall(module.metadata.get(int(note[1]), ""))[1:2]
            if references and module.debug.frames(int(references[0])):
                return int(references[0])
    for instruction in function.blocks[loop.header].instructions:
        if instruction.location >= 0 and not instruction.is_debug:
            return instruction.location
    return -1


class _Edge:
    """An edge between two blocks, and the way to put lines on it."""

    def __init__(self, function: Function, flow: Flow, source: int, target: int, edits: Edits) -> None:
        self._edits = edits
        self._source = function.blocks[source]
        self._target = function.blocks[target]
        self._only_way_out = len(flow.successors[source]) == 1
        self._only_way_in = len(flow.predecessors[target]) == 1
        self._name = f"%rb.edge.{source}.{target}"

    @property
    def is_usable(self) -> bool:
        """Exceptions that reach a landing pad from several blocks, and computed gotos, have no place for a site."""
        if self._only_way_in:
            return True
        if any(instruction.opcode == "landingpad" for instruction in self._target.instructions):
            return False
        return self._source.terminator.opcode in _SPLITTABLE

    def insert(self, lines: list[str]) -> None:
        terminator = self._source.terminator
        if self._only_way_out and terminator.opcode in ("br", "switch"):
            self._edits.before(terminator, *lines)
        elif self._only_way_in:
            self._edits.foremost(_first_ordinary(self._target), *lines)
        else:
            self._split(terminator, lines)

    def _split(self, terminator: Instruction, lines: list[str]) -> None:
        edits, old = self._edits, self._target.label
        pattern = re.compile(rf"label {re.escape(old)}(?![-\w$.])")
        edits.replace(terminator, pattern.sub(lambda _: f"label {self._name}", edits.text(terminator)))
        edits.add_block(self._name, *lines, f"  br label {old}")
        for phi in self._target.instructions:
            if phi.opcode != "phi":
                break
            edits.replace(phi, _rename_incoming(edits.text(phi), self._source.label, self._name))


def _first_ordinary(block: Block) -> Instruction:
    return next(instruction for instruction in block.instructions if instruction.opcode not in ("phi", "landingpad"))


def _rename_incoming(phi: str, old: str, new: str) -> str:
    """A phi in which one predecessor has another name; the several edges of a switch become one."""
    parts = []
    seen = False
    for part in split_commas(phi):
        if part.endswith(f", {old} ]"):
            if seen:
                continue
            seen = True
            parts.append(f"{part[: -len(old) - 2]}{new} ]")
        else:
            parts.append(part)
    return ", ".join(parts)
