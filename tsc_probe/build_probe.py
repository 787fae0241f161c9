"""Build script of the probe library, run by setuptools through cffi (out-of-line API mode).

The declarations are cut out of `rb_probe.h`, so that C and Python read the same header. cffi releases the GIL
around every call.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import cffi

# Paths go through src/recbulc (a link to this folder) and stay relative: setuptools puts them into the sdist.
CSRC = Path("src/recbulc/tsc_probe/csrc")
SOURCES = ["rb_team.c", "rb_scheme1.c", "rb_handoff.c", "rb_scheme2.c", "rb_litmus.c", "rb_counter.c"]
MARKED = re.compile(r"/\* cffi: begin \*/(.*)/\* cffi: end \*/", re.DOTALL)


def declarations(header: Path) -> str:
    """The part of the header that cffi can parse."""
    marked = MARKED.search(header.read_text(encoding="utf-8"))
    if marked is None:
        raise ValueError(f"{header}: no cffi marks")
    return marked.group(1)


ffibuilder = cffi.FFI()
ffibuilder.cdef(declarations(CSRC / "rb_probe.h"))
ffibuilder.set_source(
    "recbulc.tsc_probe._probe",
    '#include "rb_probe.h"',
    sources=[os.fspath(CSRC / name) for name in SOURCES],
    include_dirs=[os.fspath(CSRC)],
    depends=[os.fspath(header) for header in sorted(CSRC.glob("*.h"))],
    extra_compile_args=["-std=gnu11", "-O2", "-Wall", "-Wextra", "-pthread"],
    extra_link_args=["-pthread"],
)
