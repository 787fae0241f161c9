"""Native parts only; everything else is in pyproject.toml."""

import platform
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
    sys.exit(f"recbulc runs on Linux x86-64; this is {platform.system()} {platform.machine()}")

# Paths go through src/recbulc (links to the stage folders) and stay relative: setuptools puts them into the sdist.
RECORDERS, REPLAY, PROBE = (Path(f"src/recbulc/{stage}/csrc") for stage in ("recorders", "replay", "tsc_probe"))


class PreloadLibrary(Extension):
    """A plain shared library for LD_PRELOAD: no Python in it, and none in its name."""


class BuildExt(build_ext):
    """Gives a PreloadLibrary its plain name."""

    def get_ext_filename(self, fullname: str) -> str:
        """`recbulc.recorders.librecbulc` is recbulc/recorders/librecbulc.so."""
        if isinstance(self.ext_map.get(fullname), PreloadLibrary):
            return f"{fullname.replace('.', '/')}.so"
        return super().get_ext_filename(fullname)

    def get_export_symbols(self, ext: Extension) -> list[str]:
        """A PreloadLibrary exports its hooks, by attribute."""
        return [] if isinstance(ext, PreloadLibrary) else super().get_export_symbols(ext)


runtime = PreloadLibrary(
    "recbulc.recorders.librecbulc",
    sources=[str(source) for folder in (RECORDERS, REPLAY) for source in sorted(folder.glob("*.c"))],
    include_dirs=[str(folder) for folder in (RECORDERS, REPLAY, PROBE)],
    depends=[str(header) for folder in (RECORDERS, REPLAY, PROBE) for header in sorted(folder.glob("*.h"))],
    define_macros=[("_GNU_SOURCE", None)],
    extra_compile_args=[
        "-std=gnu11",
        "-O2",
        "-Wall",
        "-Wextra",
        "-fvisibility=hidden",
        # What a site reaches must leave vector registers alone: the compiler's code, and what it would call for a loop.
        "-mgeneral-regs-only",
        "-fno-builtin",
        "-fno-tree-loop-distribute-patterns",
    ],
    extra_link_args=["-Wl,-z,now", "-Wl,-z,defs"],  # no lazy binding: a resolver would save no vector registers
)

setup(
    cffi_modules=["src/recbulc/tsc_probe/build_probe.py:ffibuilder"],
    ext_modules=[runtime],
    cmdclass={"build_ext": BuildExt},
)
