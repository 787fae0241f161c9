"""Debug locations: from `!dbg !7` to the chain of source lines that were inlined into one another."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FIELDS = re.compile(r'(\w+): (?:"((?:[^"\\]|\\.)*)"|!(\d+)|([^,()]+))')
_ESCAPE = re.compile(r"\\([0-9A-Fa-f]{2}|\\)")


@dataclass(frozen=True, slots=True)
class Frame:
    """One source position: in which function, file, line and column (0: unknown)."""

    function: str
    file: str
    line: int
    column: int


class DebugInfo:
    """Answers from the numbered metadata of a module; each node is looked at once."""

    def __init__(self, metadata: dict[int, str]) -> None:
        self._metadata = metadata
        self._fields: dict[int, dict[str, str]] = {}
        self._frames: dict[int, tuple[Frame, ...]] = {}
        self._scopes: dict[int, tuple[str, str]] = {}
        self._files: dict[int, str] = {}

    def frames(self, location: int) -> tuple[Frame, ...]:
        """The position of `!dbg !location`, innermost first, then where that was inlined, and so on."""
        known = self._frames.get(location)
        if known is not None:
            return known
        frames: tuple[Frame, ...] = ()
        if self._metadata.get(location, "").removeprefix("distinct ").startswith("!DILocation("):
            fields = self._read(location)
            function, file = self._scope(int(fields["scope"]))
            here = Frame(function, file, int(fields.get("line", "0")), int(fields.get("column", "0")))
            outer = self.frames(int(fields["inlinedAt"])) if "inlinedAt" in fields else ()
            frames = (here, *outer)
        self._frames[location] = frames
        return frames

    def subprogram(self, number: int) -> Frame | None:
        """Where the function with this DISubprogram stands."""
        if number not in self._metadata:
            return None
        function, file = self._scope(number)
        return Frame(function, file, int(self._read(number).get("line", "0")), 0)

    def _read(self, number: int) -> dict[str, str]:
        fields = self._fields.get(number)
        if fields is None:
            fields = {}
            for name, string, reference, other in _FIELDS.findall(self._metadata.get(number, "")):
                fields[name] = _unescape(string) if string else reference or other
            self._fields[number] = fields
        return fields

    def _scope(self, number: int) -> tuple[str, str]:
        """Function and file of a scope: the file is the innermost scope's own (an #include inside a function)."""
        known = self._scopes.get(number)
        if known is not None:
            return known
        fields = self._read(number)
        text = self._metadata.get(number, "").removeprefix("distinct ")
        file = self._file(int(fields["file"])) if fields.get("file", "").isdigit() else ""
        if text.startswith("!DISubprogram("):
            known = (fields.get("name") or fields.get("linkageName", ""), file)
        elif fields.get("scope", "").isdigit():
            outer_function, outer_file = self._scope(int(fields["scope"]))
            known = (outer_function, file or outer_file)
        else:
            known = ("", file)
        self._scopes[number] = known
        return known

    def _file(self, number: int) -> str:
        known = self._files.get(number)
        if known is None:
            fields = self._read(number)
            name, directory = fields.get("filename", ""), fields.get("directory", "")
            known = name if name.startswith("/") or not directory else f"{directory}/{name}"
            self._files[number] = known
        return known


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    raw = _ESCAPE.sub(lambda m: "\\" if m[1] == "\\" else chr(int(m[1], 16)), text)
    return raw.encode("latin-1", "replace").decode("utf-8", "replace") if not raw.isascii() else raw
