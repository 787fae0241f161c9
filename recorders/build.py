"""`recbulc cc`: compile to IR, insert sites, compile that, link; everything else is left to clang (ReCBuLC §5)."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import platformdirs

from recbulc.errors import InputError, RecbulcError
from recbulc.recorders.commandline import INSTRUMENTED, CommandLine, Input, parse
from recbulc.recorders.compiler import Compiler, find_compiler
from recbulc.recorders.instrument.meta import object_id, pack
from recbulc.recorders.instrument.rewrite import instrument

LEVEL_ENVIRONMENT = "RECBULC_LEVEL"
LEVELS = frozenset({"SYNC", "FUNC", "LOOP", "FUNCLOOP", "RW"})  # all of them are in every program we build
_DEBUG_LEVEL = re.compile(r"-g(gdb|line-tables-only|mlt)?[0-3]?$|-gdwarf(-\d)?$")
STRINGS = Path(__file__).parent / "strings" / "rb_string.c"

_RELOCATABLE = frozenset({"-r", "-Wl,-r", "--relocatable", "-Wl,--relocatable"})
_TO_IR = ("-fno-vectorize", "-fno-slp-vectorize", "-mno-red-zone", "-S", "-emit-llvm")
_FROM_IR = ("-Qunused-arguments", "-w", "-Xclang", "-disable-llvm-passes", "-c")


def run_compiler(arguments: list[str], *, cxx: bool) -> int:
    """Do what a compiler called with these arguments does; its exit code."""
    line = parse(arguments, cxx=cxx)
    _check_level(line.level or os.environ.get(LEVEL_ENVIRONMENT, ""))
    compiler = find_compiler()
    if line.is_alone:
        rest = [word for word in arguments if not word.startswith("--recbulc-level=")]
        return _call([*compiler.driver(cxx=cxx), *rest])
    with tempfile.TemporaryDirectory(prefix="recbulc-") as directory:
        return _Build(compiler, line, cxx, Path(directory)).run()


def _check_level(level: str) -> None:
    unknown = [name for name in level.split(",") if name and name not in LEVELS]
    if unknown:
        raise InputError(
            f"nothing is built in for the level {', '.join(unknown)}",
            f"leave {LEVEL_ENVIRONMENT} and --recbulc-level away: {', '.join(sorted(LEVELS))} are always there",
        )


def _call(command: list[str]) -> int:
    return subprocess.run(command, check=False).returncode


class _Failed(Exception):  # noqa: N818 (clang has said why; only its exit code is left to hand on)
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class _Build:
    """One call of the wrapper."""

    compiler: Compiler
    line: CommandLine
    cxx: bool
    directory: Path

    def run(self) -> int:
        try:
            if self.line.is_compile:
                for source in self.line.inputs:
                    if source.is_source:
                        self._compile(source, self.line.output or Path(source.path).with_suffix(".o").name)
                return 0
            return self._link()
        except _Failed as failed:
            return failed.code

    def _link(self) -> int:
        words: list[str] = []
        for number, item in enumerate(self.line.items):
            if isinstance(item, tuple):
                words += item
            elif item.is_source:
                target = str(self.directory / f"{number}-{Path(item.path).stem}.o")
                self._compile(item, target)
                words.append(target)
            else:
                words.append(item.path)
        if not _RELOCATABLE & {*words}:
            words.append(str(strings_object(self.compiler)))
        output = ["-o", self.line.output] if self.line.output else []
        return _call([*self.compiler.driver(cxx=self.cxx), "-Qunused-arguments", *words, *output])

    def _compile(self, source: Input, target: str) -> None:
        driver = self.compiler.driver(cxx=self.cxx)
        options = self.line.compile_options()
        quiet = [] if self.line.is_compile else ["-Qunused-arguments"]
        if source.language not in INSTRUMENTED:
            self._step([*driver, *options, *quiet, "-c", "-o", target, "-x", source.language, source.path])
            return
        compile_source(
            self.compiler,
            source,
            target,
            to_ir=[*quiet, "-fno-omit-frame-pointer", *options, *self.line.dependency_options(source.path)],
            from_ir=["-fno-omit-frame-pointer", *self.line.codegen_options()],
            command=self.line.arguments,
            directory=self.directory,
            cxx=self.cxx,
        )

    @staticmethod
    def _step(command: list[str]) -> None:
        code = _call(command)
        if code:
            raise _Failed(code)


def compile_source(
    compiler: Compiler,
    source: Input,
    target: str,
    *,
    to_ir: list[str],
    from_ir: list[str],
    command: list[str],
    directory: Path,
    cxx: bool,
) -> None:
    """One source to one object with sites; raises what `run_compiler` turns into clang's exit code."""
    driver = compiler.driver(cxx=cxx)
    plain, probed, meta = (directory / name for name in ("plain.ll", "sites.ll", "meta"))
    code = _call([*driver, *to_ir, *_debug(to_ir), *_TO_IR, "-o", str(plain), "-x", source.language, source.path])
    if code:
        raise _Failed(code)
    ir = plain.read_text(encoding="utf-8", errors="surrogateescape")
    system = tuple(value for option, value in pairwise(to_ir) if option == "-isystem")
    try:
        instrumented = instrument(ir, (*compiler.system, *system))
    except (ValueError, AssertionError, LookupError) as error:
        raise RecbulcError(
            f"{source.path} became IR that recbulc cannot read: {error}", f"please report it, with {compiler.name}'s IR"
        ) from error
    identity = object_id(ir, command, str(Path.cwd()))
    meta.write_bytes(
        pack(
            identity,
            instrumented.sites,
            ir,
            source=source.path,
            directory=str(Path.cwd()),
            command=command,
            compiler=compiler.name,
        )
    )
    text = instrumented.finish(identity, str(meta))
    probed.write_text(text, encoding="utf-8", errors="surrogateescape")
    to_object = [*driver, *from_ir, *_FROM_IR, "-o", target, "-x", "ir"]
    code = _call([*to_object, str(probed)])
    if code:
        if subprocess.run([*to_object, str(plain)], capture_output=True, check=False).returncode:
            raise _Failed(code)  # nor without sites: the source's inline assembly, or a target that cannot be written
        raise RecbulcError(
            f"clang did not accept the code with sites that was made of {source.path}",
            "please report it, with the source and this output",
        )


def _debug(options: list[str]) -> list[str]:
    """Sites need lines: -g, unless some other kind of it is asked for."""
    asked = [option for option in options if _DEBUG_LEVEL.match(option)]
    return [] if asked and not asked[-1].endswith("0") else ["-g"]


def strings_object(compiler: Compiler) -> Path:
    """Our memory and string functions as an object, made once for each compiler and version of ours."""
    digest = hashlib.sha256("\0".join(compiler.command).encode())
    for file in (STRINGS, *sorted(Path(__file__).parent.glob("i*/*.py"))):
        digest.update(file.read_bytes())
    folder = Path(platformdirs.user_cache_dir("recbulc"))
    cached = folder / f"strings-{digest.hexdigest()[:16]}.o"
    if cached.exists():
        return cached
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="strings-", dir=folder) as name:
            made = Path(name) / "rb_string.o"
            options = ["-O1", "-fPIC", "-fno-builtin", "-fno-unroll-loops", "-D_GNU_SOURCE", "-fno-omit-frame-pointer"]
            compile_source(
                compiler,
                Input(str(STRINGS), "c"),
                str(made),
                to_ir=options,
                from_ir=options,
                command=[STRINGS.name],
                directory=Path(name),
                cxx=False,
            )
            made.replace(cached)
    except _Failed:
        raise RecbulcError(
            f"{compiler.name} cannot compile our own {STRINGS.name}",
            "its headers may be missing: apt-get install libc6-dev",
        ) from None
    except OSError as error:
        raise InputError(
            f"cannot write to the cache {folder}: {error}", "set XDG_CACHE_HOME to a place of yours"
        ) from None
    return cached
