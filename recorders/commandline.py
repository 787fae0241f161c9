"""The arguments of a C compiler: which are inputs, which belong to which step."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from recbulc.errors import InputError

LEVEL_OPTION = "--recbulc-level="

# fmt: off
_WITH_VALUE = frozenset({
    "-o", "-x", "-I", "-D", "-U", "-L", "-l", "-T", "-u", "-z", "-e", "-B", "-F", "-A", "-G", "-include", "-imacros",
    "-isystem", "-iquote", "-idirafter", "-isysroot", "-iprefix", "-iwithprefix", "-iwithprefixbefore", "-include-pch",
    "-MF", "-MT", "-MQ", "-MJ", "-Xclang", "-Xlinker", "-Xassembler", "-Xpreprocessor", "-Xanalyzer", "-mllvm",
    "-target", "--target", "-arch", "--param", "-resource-dir", "-working-directory", "--sysroot", "-gcc-toolchain",
    "--gcc-toolchain", "-dumpbase", "-dumpdir", "-aux-info", "-rpath", "-R", "-Tbss", "-Tdata", "-Ttext",
    "-weak_library", "--config",
})
# fmt: on
_LANGUAGES = {
    ".c": "c",
    ".i": "cpp-output",
    ".cc": "c++",
    ".cp": "c++",
    ".cpp": "c++",
    ".cxx": "c++",
    ".c++": "c++",
    ".C": "c++",
    ".CC": "c++",
    ".CPP": "c++",
    ".ii": "c++-cpp-output",
    ".s": "assembler",
    ".S": "assembler-with-cpp",
    ".sx": "assembler-with-cpp",
    ".ll": "ir",
    ".bc": "ir",
    ".h": "c-header",
    ".hh": "c++-header",
    ".hpp": "c++-header",
}
INSTRUMENTED = frozenset({"c", "c++", "cpp-output", "c++-cpp-output"})
_ASSEMBLED = frozenset({"assembler", "assembler-with-cpp", "ir"})
# with one of these nothing is instrumented: clang does it alone
# fmt: off
_ALONE = frozenset({
    "-E", "-S", "-M", "-MM", "-fsyntax-only", "-emit-llvm", "-emit-ast", "--analyze", "-###", "--version",
    "-dumpversion", "-dumpmachine", "--help", "--precompile", "-fdriver-only",
})
# fmt: on
_DROPPED = ("-flto", "-fno-lto", "-ffat-lto-objects", "-fwhole-program-vtables", "-gsplit-dwarf")
_ASKING = ("-print-", "--print-", "--help")
_ASSEMBLING = ("-Wa,", "-Xassembler")
_LINK_ONLY = ("-Wl,", "-l", "-L", "-Xlinker", "-z", "-rpath", "-T", "-u", "-e")
_PREPROCESSING = ("-D", "-U", "-I", "-i", "-M", "-W", "-std", "--std", "-pedantic", "-Xclang", "-Xpreprocessor", "-w")


@dataclass(frozen=True)
class Input:
    """A file to be compiled or linked; language "" is for the linker."""

    path: str
    language: str

    @property
    def is_source(self) -> bool:
        """Does it have to be compiled first?"""
        return self.language in INSTRUMENTED or self.language in _ASSEMBLED


@dataclass
class CommandLine:
    """A compiler's arguments, taken apart; `items` has all but -o, -c and -x in their order."""

    arguments: list[str]
    items: list[Input | tuple[str, ...]] = field(default_factory=list)
    output: str = ""
    is_compile: bool = False
    is_alone: bool = False
    level: str = ""

    @property
    def inputs(self) -> list[Input]:
        """All files named."""
        return [item for item in self.items if isinstance(item, Input)]

    @property
    def options(self) -> list[tuple[str, ...]]:
        """All options, each with its value."""
        return [item for item in self.items if isinstance(item, tuple)]

    def compile_options(self) -> list[str]:
        """What the step from source to IR gets."""
        return [
            word
            for option in self.options
            if not _is_link_only(option) and not option[0].startswith(_ASSEMBLING)
            for word in option
        ]

    def codegen_options(self) -> list[str]:
        """What the step from IR to object gets."""
        return [
            word
            for option in self.options
            if not _is_link_only(option)
            and (option[0].startswith(_ASSEMBLING) or not option[0].startswith(_PREPROCESSING))
            for word in option
        ]

    def dependency_options(self, source: str) -> list[str]:
        """-M options that say what clang would have chosen by itself, had it written the object directly."""
        names = {option[0] for option in self.options}
        if not names & {"-MD", "-MMD"} and not any(n.startswith(("-Wp,-MD", "-Wp,-MMD")) for n in names):
            return []
        added = []
        if not any(name.startswith("-MF") for name in names) and names & {"-MD", "-MMD"}:
            stem = self.output if self.output else Path(source).name
            added += ["-MF", os.path.splitext(stem)[0] + ".d"]  # noqa: PTH122 (an argument, not a path of ours)
        if not any(name.startswith(("-MT", "-MQ")) for name in names):
            added += ["-MQ", self.output or f"{Path(source).stem}.o"]
        return added


def parse(arguments: list[str], *, cxx: bool) -> CommandLine:
    """Take a command line apart; response files are opened."""
    line = CommandLine(arguments)
    words = _expand(arguments)
    files = []
    if "--" in words:
        end = words.index("--")
        words, files = words[:end], words[end + 1 :]
    language = ""
    at = 0
    while at < len(words):
        word = words[at]
        option, value, taken = _valued(words, at)
        at += taken
        if word.startswith(LEVEL_OPTION):
            line.level = word.removeprefix(LEVEL_OPTION)
        elif word == "-" or not word.startswith("-"):
            line.items.append(Input(word, language or _language(word, cxx=cxx)))
        elif word == "-c":
            line.is_compile = True
        elif option == "-o":
            line.output = value
        elif option == "-x":
            language = "" if value == "none" else value
        elif option:
            line.items.append((option, value))
        elif not word.startswith(_DROPPED):
            # an option whose value is missing: clang says so
            line.is_alone |= word in _ALONE or word in _WITH_VALUE or word.startswith(_ASKING)
            line.items.append((word,))
    for file in files:
        path = f"./{file}" if file.startswith("-") else file
        line.items.append(Input(path, language or _language(path, cxx=cxx)))
    sources = [item for item in line.inputs if item.is_source]
    other = any(item.language and not item.is_source for item in line.inputs)  # headers, other languages
    line.is_alone |= not line.inputs or other
    line.is_alone |= line.is_compile and (not sources or (bool(line.output) and len(sources) > 1))
    return line


def _valued(words: list[str], at: int) -> tuple[str, str, int]:
    """The option there, its value, and how many words that is; "" for an option that is one word."""
    word = words[at]
    if word in _WITH_VALUE and at + 1 < len(words):
        return word, words[at + 1], 2
    if len(word) > 2 and word.startswith(("-o", "-x")) and not word.startswith("-objc"):
        return word[:2], word[2:], 1
    return "", "", 1


def _language(path: str, *, cxx: bool) -> str:
    language = _LANGUAGES.get(Path(path).suffix, "")
    if cxx and language in ("c", "cpp-output", "c-header"):
        return {"c": "c++", "cpp-output": "c++-cpp-output", "c-header": "c++-header"}[language]
    return language


def _is_link_only(option: tuple[str, ...]) -> bool:
    return option[0].startswith(_LINK_ONLY) or option[0] in ("-shared", "-static", "-pie", "-rdynamic", "-s", "-r")


def _expand(words: list[str]) -> list[str]:
    expanded = []
    for word in words:
        file = Path(word[1:])
        if word.startswith("@") and len(word) > 1 and file.is_file():
            try:
                expanded += _expand(shlex.split(file.read_text(encoding="utf-8", errors="surrogateescape")))
            except ValueError as error:
                raise InputError(f"the response file {file} is damaged: {error}", "close its quotes") from None
            except RecursionError:
                raise InputError(f"the response file {file} names itself", "take that out") from None
        else:
            expanded.append(word)
    return expanded
