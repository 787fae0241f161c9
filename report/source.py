"""Source lines for people, where the files are still there."""

from __future__ import annotations

import re
from pathlib import Path

from recbulc.schedule import Schedule

REMARK = re.compile(r"(?<=\S)\s*(?://.*|/\*(?:(?!\*/).)*\*/\s*)$")  # at a line's end


class Sources:
    """Finds the files that a program's sites name, and reads each at most once."""

    def __init__(self, schedule: Schedule) -> None:
        self._program = Path(schedule.program)
        self._places = (Path(), Path(schedule.cwd), self._program.parent)
        self._lines: dict[str, list[str]] = {}
        self._stale: set[str] = set()

    def text(self, file: str, line: int) -> str:
        """The line without indentation and remark; empty where there is no such file or line."""
        if file not in self._lines:
            self._lines[file] = self._read(file)
        lines = self._lines[file]
        return REMARK.sub("", lines[line - 1].strip()) if 0 < line <= len(lines) else ""

    @property
    def stale(self) -> tuple[str, ...]:
        """Files read so far that were changed after the program was built: their lines may not be the program's."""
        return tuple(sorted(self._stale))

    def _read(self, file: str) -> list[str]:
        for place in self._places:
            path = place / file
            try:
                lines = path.read_text(errors="replace").splitlines()
                if path.stat().st_mtime > self._program.stat().st_mtime:
                    self._stale.add(file)
            except OSError:
                continue
            return lines
        return []
