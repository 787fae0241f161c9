"""Source lines for instructions that the optimiser left without one.

What was merged from two places has line 0 in its function. Its address was computed in one of them, and what stands
beside it is near; a line of the same function tells a reader more than that of the function's beginning.
"""

from __future__ import annotations

from collections.abc import Iterator

from recbulc.recorders.ir.debuginfo import DebugInfo, Frame
from recbulc.recorders.ir.module import Block, Function, Instruction
from recbulc.recorders.ir.operands import LOCAL

MOST_STEPS = 8  # from an instruction to what its address comes of


def better_locations(function: Function, debug: DebugInfo) -> dict[int, int]:
    """By the instruction's line in the module: a debug location of the same source function that has a line."""
    found: dict[int, int] = {}
    definitions: dict[str, Instruction] | None = None
    for block in function.blocks:
        for place, instruction in enumerate(block.instructions):
            own = _innermost(instruction, debug)
            if own is None or own.line or instruction.is_debug:
                continue
            if definitions is None:
                definitions = {each.result: each for each in function.instructions() if each.result}
            for other in (*_sources(instruction, definitions), *_beside(block, place)):
                frame = _innermost(other, debug)
                if frame and frame.line and (frame.function, frame.file) == (own.function, own.file):
                    found[instruction.line] = other.location
                    break
    return found


def _innermost(instruction: Instruction, debug: DebugInfo) -> Frame | None:
    frames = debug.frames(instruction.location) if instruction.location >= 0 else ()
    return frames[0] if frames else None


def _sources(instruction: Instruction, definitions: dict[str, Instruction]) -> Iterator[Instruction]:
    """What defines its address (the last operand), what defines that one's, and so on."""
    seen = {instruction.result}
    for _ in range(MOST_STEPS):
        names = [name for name in LOCAL.findall(instruction.operands) if name in definitions and name not in seen]
        if not names:
            return
        name = names[0] if instruction.opcode in ("phi", "getelementptr") else names[-1]
        seen.add(name)
        instruction = definitions[name]
        yield instruction


def _beside(block: Block, place: int) -> Iterator[Instruction]:
    """The others of its block: those behind it, then those before it, the nearest first."""
    yield from block.instructions[place + 1 :]
    yield from reversed(block.instructions[:place])
