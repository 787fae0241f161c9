"""From a module's IR to the same module with probe sites."""

from __future__ import annotations

import re
from dataclasses import dataclass

from recbulc.recorders.instrument.accesses import AccessWriter
from recbulc.recorders.instrument.book import SiteBook
from recbulc.recorders.instrument.copies import (
    PIECES,
    PREFIX,
    STRING_FUNCTIONS,
    MemoryIntrinsic,
    declaration,
    decode_intrinsic,
    is_inlined,
)
from recbulc.recorders.instrument.edges import write_loops
from recbulc.recorders.instrument.edits import Edits
from recbulc.recorders.instrument.pointers import Pointers
from recbulc.recorders.instrument.site import OBJECT_LABEL, OBJECTS_SECTION, Site, SiteAssembler, SiteKind
from recbulc.recorders.ir.calls import Call, decode_call
from recbulc.recorders.ir.memory import decode
from recbulc.recorders.ir.module import Block, Function, Instruction, Module, parse_module
from recbulc.recorders.ir.operands import NAME

_TAIL_CALL = re.compile(rf"  (?:{NAME} = )?(?:must)?tail call ")


@dataclass(frozen=True)
class Instrumented:
    """The new text and the sites in it."""

    lines: list[str]
    sites: list[Site]

    def finish(self, identity: bytes, meta_file: str) -> str:
        """The whole .ll: `identity` names the object, `meta_file` is what its meta section is made of."""
        pieces = "rb_pieces-." if any(line.startswith(f"{PIECES} = ") for line in self.lines) else "0"
        assembly = (
            f'.pushsection {OBJECTS_SECTION},"aR",@progbits',
            ".p2align 2",
            f"{OBJECT_LABEL}:",
            ".byte " + ",".join(map(str, identity)),
            f".long {len(self.sites)},{pieces},0",
            ".popsection",
            '.pushsection .recbulc.meta,"",@progbits',
            f'.incbin "{meta_file}"',
            ".popsection",
        )
        quoted = [f'module asm "{_escape(line)}"' for line in assembly]
        return "\n".join([*self.lines, *quoted, ""])


def instrument(text: str, system: tuple[str, ...] = ()) -> Instrumented:
    """Put sites into a module. `system` are directories whose files are not the user's own, beside the usual ones."""
    module = parse_module(text)
    is_runtime = PIECES in module.globals
    rewriter = _Rewriter(module, SiteBook(module.debug, system, is_runtime=is_runtime), is_runtime=is_runtime)
    return Instrumented(rewriter.rewrite(), rewriter.book.sites)


class _Rewriter:
    def __init__(self, module: Module, book: SiteBook, *, is_runtime: bool) -> None:
        self.book = book
        self._module = module
        self._is_runtime = is_runtime
        self._own = {f.name for f in module.functions if not book.is_system_function(f)}
        self._defined = {f.name for f in module.functions}
        self._redirected: set[str] = set()

    def rewrite(self) -> list[str]:
        lines = self._module.lines
        out: list[str] = []
        at = 0
        for function in self._module.functions:
            if self._is_instrumented(function):
                out.extend(lines[at : function.line])
                out.extend(self._function(function))
                at = function.end + 1
        out.extend(lines[at:])
        out.extend(declaration(name) for name in sorted(self._redirected) if f"@{PREFIX}{name}" not in self._defined)
        return out

    def _is_instrumented(self, function: Function) -> bool:
        # a body that is only there to be inlined is not emitted; a naked one has room for nothing
        before_name = function.header[: function.header.index("@")]
        return " available_externally " not in before_name and " naked " not in self._attributes(function)

    def _attributes(self, function: Function) -> str:
        group = function.attribute_group
        written = function.header[function.after_parameters :]
        return f"{written} {self._module.lines[self._module.attributes[group]] if group >= 0 else ''} "

    def _header(self, function: Function) -> str:
        """The `define` line: without a red zone, because sites push."""
        header, end = function.header, function.after_parameters + 1
        if " noredzone " in self._attributes(function):
            return header
        for word in (" unnamed_addr", " local_unnamed_addr"):
            if header.startswith(word, end):
                end += len(word)
        return f"{header[:end]} noredzone{header[end:]}"

    def _function(self, function: Function) -> list[str]:
        self.book.begin(function)
        edits = Edits(function)
        private = " private " in function.header[: function.header.index("@")]
        assembler = SiteAssembler(f".L{function.name[1:]}" if private else function.name[1:])
        writer = AccessWriter(edits, self.book, assembler, Pointers(self._module, function), self._module.layout)
        self._entry(function, edits, assembler)
        for block in function.blocks:
            for instruction in block.instructions:
                access = decode(instruction)
                if access is not None:
                    writer.access(instruction, access)
                    continue
                call = decode_call(instruction)
                if call is not None:
                    self._call(instruction, call, edits, writer, assembler)
                elif instruction.opcode == "ret":
                    site = self.book.add(SiteKind.FUNC_EXIT, instruction.line, instruction.location)
                    edits.ahead(_leaving(block), assembler.mark(site))
        write_loops(self._module, function, edits, self.book, assembler)
        return edits.apply(self._module.lines, self._header(function))

    def _entry(self, function: Function, edits: Edits, assembler: SiteAssembler) -> None:
        first = next(
            instruction
            for instruction in function.blocks[0].instructions
            if instruction.opcode != "alloca" and not instruction.is_debug
        )
        edits.ahead(first, assembler.mark(self.book.add(SiteKind.FUNC_ENTRY, function.line, -1)))

    def _call(
        self, instruction: Instruction, call: Call, edits: Edits, writer: AccessWriter, assembler: SiteAssembler
    ) -> None:
        name = call.callee[1:]
        intrinsic = decode_intrinsic(call)
        if intrinsic is not None and is_inlined(call):
            writer.copy(instruction, intrinsic)
            return
        if self._is_runtime or (intrinsic is None and name.startswith("llvm.")):
            return
        if call.callee not in self._own:
            _, is_system = self.book.place(instruction.location)
            if not is_system:
                site = self.book.add(SiteKind.CALL, instruction.line, instruction.location)
                edits.before(instruction, assembler.mark(site))
        if intrinsic is not None:
            edits.replace(instruction, self._own_copy(instruction, intrinsic, edits))
        elif name in STRING_FUNCTIONS and call.callee not in self._defined:
            self._redirected.add(name)
            start = call.open - len(call.callee)
            edits.replace(instruction, f"{call.text[:start]}@{PREFIX}{name}{call.text[call.open :]}")

    def _own_copy(self, instruction: Instruction, intrinsic: MemoryIntrinsic, edits: Edits) -> str:
        """A memory intrinsic that is too long to be opened up, as a call of our own function."""
        self._redirected.add(intrinsic.function)
        lines = []
        source = f"ptr {intrinsic.source}"
        if intrinsic.function == "memset":
            byte = edits.new_name()
            lines.append(f"  {byte} = zext i8 {intrinsic.source} to i32")
            source = f"i32 {byte}"
        length = intrinsic.length
        location = f", !dbg !{instruction.location}" if instruction.location >= 0 else ""
        lines.append(
            f"  {edits.new_name()} = call ptr @{PREFIX}{intrinsic.function}"
            f"(ptr {intrinsic.target}, {source}, i64 {length}){location}"
        )
        return "\n".join(lines)


def _leaving(block: Block) -> Instruction:
    """Where a function's exit site stands: before the ret, or before a tail call that the ret hands on."""
    ret = block.terminator
    for instruction in reversed(block.instructions[:-1]):
        if instruction.is_debug:
            continue
        if not _TAIL_CALL.match(instruction.text) or "@llvm." in instruction.text:
            return ret
        returned = ret.text.split(", !dbg")[0].split()[-1]
        return instruction if returned in ("void", instruction.result) else ret
    return ret


def _escape(text: str) -> str:
    return text.replace("\\", "\\5C").replace('"', "\\22")
