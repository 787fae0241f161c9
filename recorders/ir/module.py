"""A module of textual LLVM IR as clang 16 and later print it.

Lines are kept as they are and looked into only where somebody asks: reading is one pass over the text. Names of values
keep their sigil (`%5`, `@main`, `%"a b"`); labels of blocks are names of values too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from recbulc.recorders.ir.debuginfo import DebugInfo
from recbulc.recorders.ir.operands import NAME, closing, split_commas
from recbulc.recorders.ir.types import Layout

_INSTRUCTION = re.compile(rf"  (?:({NAME}) = )?(?:(?:must|no)?tail )?([a-z_]\w*)")
_LABEL = re.compile(r'([-\w$.]+|"[^"]*"):')
_DEFINE_NAME = re.compile(rf"({NAME})\(")
_DBG = re.compile(r", !dbg !(\d+)")
_DEFINE_DBG = re.compile(r" !dbg !(\d+)")
_GROUP = re.compile(r" #(\d+)")
_GLOBAL = re.compile(rf"({NAME}) = (.*)$")
_GLOBAL_KIND = re.compile(r"(?:^| )(global|constant|alias|ifunc) ")
_LABELS = re.compile(r'label (%(?:[-\w$.]+|"[^"]*"))')

TERMINATORS = frozenset(
    {
        *("ret", "br", "switch", "indirectbr", "invoke", "callbr", "resume", "unreachable"),
        *("cleanupret", "catchret", "catchswitch"),
    }
)


@dataclass(slots=True)
class Instruction:
    """One instruction; `text` may span lines (switch, invoke, landingpad)."""

    line: int  # in the module's text, from 0
    result: str  # "" for none
    opcode: str
    text: str

    @property
    def location(self) -> int:
        """Number of its debug location, -1 for none."""
        match = _DBG.search(self.text, self.text.rfind(", !dbg !"))
        return int(match[1]) if match else -1

    @property
    def operands(self) -> str:
        """What stands behind the opcode (a result may be named like one: `%load = load i32, ptr %p`)."""
        match = _INSTRUCTION.match(self.text)
        return self.text[match.end() + 1 :] if match else ""

    @property
    def is_terminator(self) -> bool:
        """Does it end its block?"""
        return self.opcode in TERMINATORS

    def successors(self) -> list[str]:
        """Labels that a terminator names, in its order, with repetitions."""
        return _LABELS.findall(self.text)

    @property
    def is_debug(self) -> bool:
        """Is it only there for debuggers? (`#dbg_…` records are no instructions at all.)"""
        return self.opcode == "call" and "@llvm.dbg." in self.text


@dataclass(slots=True)
class Block:
    """A label, the line it stands at (-1: the entry's is not written), and instructions up to the terminator."""

    label: str
    line: int
    instructions: list[Instruction] = field(default_factory=list)

    @property
    def terminator(self) -> Instruction:
        """The last instruction."""
        return self.instructions[-1]


@dataclass(slots=True)
class Function:
    """A definition."""

    name: str
    header: str  # the line `define … {`
    line: int
    blocks: list[Block]
    end: int  # the line of the closing brace

    @property
    def location(self) -> int:
        """Number of its DISubprogram, -1 for none."""
        match = _DEFINE_DBG.search(self.header)
        return int(match[1]) if match else -1

    @property
    def attribute_group(self) -> int:
        """The N of its `#N`, -1 for none."""
        match = _GROUP.search(self.header, self.after_parameters)
        return int(match[1]) if match else -1

    @property
    def after_parameters(self) -> int:
        """Where in the header the parameters' closing bracket is."""
        match = _DEFINE_NAME.search(self.header)
        assert match is not None, self.header
        return closing(self.header, match.end() - 1)

    def parameters(self) -> list[str]:
        """Type, attributes and name of each, as written."""
        match = _DEFINE_NAME.search(self.header)
        assert match is not None, self.header
        inner = self.header[match.end() : self.after_parameters]
        return split_commas(inner) if inner else []

    def instructions(self) -> Iterator[Instruction]:
        """All, in the order of the text."""
        for block in self.blocks:
            yield from block.instructions


@dataclass(slots=True)
class Global:
    """A variable, constant or alias: `kind` is the keyword."""

    name: str
    kind: str
    thread_local: bool
    text: str


@dataclass
class Module:
    """All of a .ll file."""

    lines: list[str]
    functions: list[Function] = field(default_factory=list)
    globals: dict[str, Global] = field(default_factory=dict)
    structs: dict[str, str] = field(default_factory=dict)
    declarations: dict[str, int] = field(default_factory=dict)  # name of a function: line
    attributes: dict[int, int] = field(default_factory=dict)  # N of `attributes #N`: line
    metadata: dict[int, str] = field(default_factory=dict)

    @cached_property
    def layout(self) -> Layout:
        """Sizes of its types."""
        return Layout(self.structs)

    @cached_property
    def debug(self) -> DebugInfo:
        """Its debug locations."""
        return DebugInfo(self.metadata)


def parse_module(text: str) -> Module:
    """Read a .ll file."""
    module = Module(text.split("\n"))
    lines = module.lines
    at, count = 0, len(lines)
    while at < count:
        line = lines[at]
        head = line[:1]
        if head == "!":
            number, equals, rest = line[1:].partition(" = ")
            if equals and number.isdigit():
                module.metadata[int(number)] = rest
        elif head == "d":
            if line.startswith("define "):
                function = _parse_function(lines, at)
                module.functions.append(function)
                at = function.end
            elif line.startswith("declare "):
                match = _DEFINE_NAME.search(line)
                if match:
                    module.declarations[match[1]] = at
        elif head == "@":
            _parse_global(module, line)
        elif head == "%":
            name, _, rest = line.partition(" = type ")
            module.structs[name] = rest
        elif line.startswith("attributes #"):
            module.attributes[int(line[12 : line.index(" ", 12)])] = at
        at += 1
    return module


def _parse_global(module: Module, line: str) -> None:
    match = _GLOBAL.match(line)
    if match is None:
        return
    name, rest = match[1], match[2]
    kind = _GLOBAL_KIND.search(rest)
    if kind:
        module.globals[name] = Global(name, kind[1], "thread_local" in rest[: kind.start() + 1], rest)


def _parse_function(lines: list[str], start: int) -> Function:
    header = lines[start]
    name = _DEFINE_NAME.search(header)
    if name is None:
        raise ValueError(f"no name in {header!r}")
    function = Function(name[1], header, start, [], start)
    block = Block("", -1)
    at = start + 1
    while (line := lines[at]) != "}":
        if line.startswith("  "):
            mark = line[2]
            if mark not in " ]":
                match = _INSTRUCTION.match(line)
                assert match is not None, line
                block.instructions.append(Instruction(at, match[1] or "", match[2], line))
            elif not line.startswith("    #dbg_"):
                block.instructions[-1].text += "\n" + line
        elif line and line[0] != ";":
            label = _LABEL.match(line)
            assert label is not None, line
            if block.instructions:
                function.blocks.append(block)
            block = Block("%" + label[1], at)
        at += 1
    function.blocks.append(block)
    function.end = at
    if not function.blocks[0].label:
        function.blocks[0].label = f"%{_unnamed_parameters(function)}"
    return function


def _unnamed_parameters(function: Function) -> int:
    # the entry's number follows those of the parameters that have no name of their own
    return sum(parameter.rpartition(" %")[2].isdigit() for parameter in function.parameters())
