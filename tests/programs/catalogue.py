"""The bugs of tests/programs/bugs, by what their headers say.

A header is the `key: value` lines at the start of the file, up to the first empty line of the comment:

    class    what kind of bug it is
    oracle   how it fails: `exit N`, `signal NAME`, `deadlock`, or `regex PATTERN` (of what it prints)
    racing   the true racing lines, by the names of markers; `|` separates alternatives
    also     markers that may be named beside them (where the locks of a cycle were taken)
    threads  how many there are, the first one included
    flags    for the compiler

`/* RACE:name */` marks a line. The fixed twin is the same file with -DFIXED.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "bugs"
MARKER = re.compile(r"/\* RACE:(\w+) \*/")
FIELD = re.compile(r"^ \* (\w+): (.+)$")
CPP = {".cpp": True, ".c": False}


@dataclass(frozen=True)
class Bug:
    """One bug."""

    path: Path
    kind: str  # the header's `class`
    oracle: str
    racing: tuple[frozenset[int], ...]  # alternatives: the lines that must be named together
    also: frozenset[int]  # lines that may be named besides
    threads: int
    flags: tuple[str, ...]

    @property
    def name(self) -> str:
        """The file's, without its ending."""
        return self.path.stem

    @property
    def cpp(self) -> bool:
        """Is it C++?"""
        return CPP[self.path.suffix]

    @property
    def how(self) -> str:
        """The verdict of a failing run: exit, signal, deadlock or regex."""
        return self.oracle.partition(" ")[0]

    @property
    def fail_if(self) -> tuple[str, ...]:
        """What --fail-if must say; nothing where the default sees the failure."""
        return (f"regex:{self.oracle.partition(' ')[2]}",) if self.how == "regex" else ()

    def is_truth(self, named: Iterable[tuple[str, int]]) -> bool:
        """Are these places (file, line) a racing pair of this bug, and nothing else?"""
        places = list(named)
        if any(Path(file).name != self.path.name for file, _ in places):
            return False
        lines = {line for _, line in places}
        marked = frozenset().union(*self.racing, self.also)
        return lines <= marked and any(group <= lines for group in self.racing)

    def build(self, compiler: Sequence[str], out: Path, *, fixed: bool = False) -> Path:
        """Compile with `compiler` (`["gcc"]`, `["recbulc", "cc"]`) to the file `out`."""
        twin = ["-DFIXED"] if fixed else []
        subprocess.run(
            [*compiler, *self.flags, *twin, "-g", "-pthread", str(self.path), "-o", str(out)], check=True, timeout=120
        )
        return out


def load_bug(path: Path) -> Bug:
    """Read a header; KeyError where it names no such marker or lacks a field."""
    lines = path.read_text().splitlines()
    fields: dict[str, str] = {}
    for line in lines[1:]:
        match = FIELD.match(line)
        if match is None:
            break
        fields[match[1]] = match[2]
    marks = {match[1]: number for number, line in enumerate(lines, 1) for match in MARKER.finditer(line)}
    return Bug(
        path=path,
        kind=fields["class"],
        oracle=fields["oracle"],
        racing=tuple(frozenset(marks[name] for name in group.split()) for group in fields["racing"].split("|")),
        also=frozenset(marks[name] for name in fields.get("also", "").split()),
        threads=int(fields["threads"]),
        flags=tuple(fields["flags"].split()),
    )


def load_bugs(folder: Path = FOLDER) -> dict[str, Bug]:
    """All of a folder, by name."""
    paths = sorted(path for path in folder.iterdir() if path.suffix in CPP)
    return {path.stem: load_bug(path) for path in paths}


BUGS = load_bugs()
