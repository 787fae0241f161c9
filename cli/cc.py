"""The C compiler: `recbulc cc` takes the arguments of clang and builds programs that can be recorded and replayed."""

from __future__ import annotations

from recbulc.recorders.build import run_compiler

USAGE = """usage: recbulc {name} [--recbulc-level=LEVELS] CLANG-ARGUMENTS...

A drop-in {language} compiler: all arguments go to clang; probe sites, debug information and our memory and string
functions are added. Also for make, configure and CMake: CC="recbulc cc" CXX="recbulc c++".

example:
  recbulc {name} -O1 -pthread -o bug bug.{ending}
  recbulc {name} --help        clang's own options follow this text
"""


def run(arguments: list[str], *, cxx: bool = False) -> int:
    """Exit as the compiler does."""
    if not arguments or "--help" in arguments:
        name, language, ending = ("c++", "C++", "cc") if cxx else ("cc", "C", "c")
        print(USAGE.format(name=name, language=language, ending=ending), flush=True)
        if not arguments:
            return 2
    return run_compiler(arguments, cxx=cxx)
