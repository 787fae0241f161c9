"""Finding a clang that can write and read textual LLVM IR."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from recbulc.errors import InputError, MachineError

OLDEST = 16  # opaque pointers, and inline assembly with elementtype
NEWEST = 30
ENVIRONMENT = "RECBULC_CLANG"
_VERSION = re.compile(r"clang version (\d+)")
_REMEDY = "install one: apt-get install clang-19, or pip install 'ziglang==0.13.*' into recbulc's environment"


@dataclass(frozen=True)
class Compiler:
    """A clang: how to call it, and where its own headers are."""

    command: tuple[str, ...]
    name: str
    system: tuple[str, ...]

    def driver(self, *, cxx: bool) -> list[str]:
        """The command for C or C++."""
        return [*self.command, "--driver-mode=g++"] if cxx else list(self.command)


def find_compiler() -> Compiler:
    """$RECBULC_CLANG, then clang-N, then clang, then the one inside the ziglang wheel."""
    chosen = os.environ.get(ENVIRONMENT)
    if chosen:
        path = shutil.which(chosen)
        if path is None:
            raise InputError(f"${ENVIRONMENT} is {chosen}, which is no program", f"unset it, or {_REMEDY}")
        return _checked(path) or _refuse(path)
    for number in range(NEWEST, OLDEST - 1, -1):
        path = shutil.which(f"clang-{number}")
        if path is not None:
            return _clang(path, f"clang {number}")
    path = shutil.which("clang")
    found = _checked(path) if path is not None else None
    found = found or _zig()
    if found is None:
        raise MachineError(f"no clang of version {OLDEST} or newer was found", _REMEDY)
    return found


def _checked(path: str) -> Compiler | None:
    """A clang that says it is new enough."""
    try:
        told = subprocess.run([path, "--version"], capture_output=True, text=True, errors="replace", check=False).stdout
    except OSError:  # no program for this machine
        return None
    version = _VERSION.search(told)
    return _clang(path, f"clang {version[1]}") if version and int(version[1]) >= OLDEST else None


def _refuse(path: str) -> Compiler:
    raise InputError(f"${ENVIRONMENT} names {path}, which is no clang of version {OLDEST} or newer", _REMEDY)


def _clang(path: str, name: str) -> Compiler:
    own = Path(path).resolve().parent.parent / "lib"
    return Compiler((path,), name, (str(own),))


def _zig() -> Compiler | None:
    """The wheel's zig is also a plain clang 18; it finds the system's gcc, headers and linker by itself."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        return None
    home = Path(spec.submodule_search_locations[0])
    lib = str(home / "lib")
    command = (str(home / "zig"), "clang", "--target=x86_64-linux-gnu", "-resource-dir", lib)
    return Compiler(command, "clang of ziglang", (lib,))
