"""The numbered list of a module's sites, and where in the source each is."""

from __future__ import annotations

import os
from collections import Counter

from recbulc.recorders.instrument.lines import better_locations
from recbulc.recorders.instrument.site import Site, SiteKind
from recbulc.recorders.ir.debuginfo import DebugInfo, Frame
from recbulc.recorders.ir.module import Function

SYSTEM_DIRECTORIES = ("/usr/include/", "/usr/lib/", "/usr/lib64/", "/usr/local/include/", "/usr/local/lib/")
_NOWHERE = Frame("", "", 0, 0)


class SiteBook:
    """Gives out site numbers, in the order of the IR before anything is inserted."""

    def __init__(self, debug: DebugInfo, system: tuple[str, ...], *, is_runtime: bool = False) -> None:
        self.sites: list[Site] = []
        self._debug = debug
        self._system = (*SYSTEM_DIRECTORIES, *(os.path.normpath(directory) + "/" for directory in system))
        self._is_runtime = is_runtime
        self._ordinals: Counter[tuple[SiteKind, str, str, int]] = Counter()
        self._is_system: dict[str, bool] = {}
        self._chosen: dict[tuple[int, int], tuple[Frame, bool]] = {}
        self._function = -1
        self._better: dict[int, int] = {}

    def begin(self, function: Function) -> None:
        """The sites that follow are of this function."""
        self._function = function.location
        self._better = better_locations(function, self._debug)

    def add(self, kind: SiteKind, ir_line: int, location: int, size: int = 0, flags: int = 0) -> Site:
        """Number a site at a debug location."""
        frame, is_system = self.place(self._better.get(ir_line, location))
        key = (kind, frame.file, frame.function, frame.line)
        site = Site(
            number=len(self.sites),
            kind=kind,
            size=size,
            flags=flags,
            function=frame.function,
            file=frame.file,
            line=frame.line,
            column=frame.column,
            ordinal=self._ordinals[key],
            is_system=is_system,
            ir_line=ir_line,
        )
        self._ordinals[key] += 1
        self.sites.append(site)
        return site

    def place(self, location: int) -> tuple[Frame, bool]:
        """The innermost frame that is the user's own, else the innermost; and whether it is the system's."""
        known = self._chosen.get((location, self._function))
        if known is None:
            frames = self._debug.frames(location) if location >= 0 else ()
            subprogram = self._debug.subprogram(self._function)
            known = self._choose([frame for frame in frames if frame.line] + ([subprogram] if subprogram else []))
            self._chosen[location, self._function] = known
        return known

    def is_system_file(self, file: str) -> bool:
        """Does a file belong to the system's headers?"""
        known = self._is_system.get(file)
        if known is None:
            known = self._is_system[file] = os.path.normpath(file).startswith(self._system)
        return known

    def is_system_function(self, function: Function) -> bool:
        """Is its definition in a system header?"""
        subprogram = self._debug.subprogram(function.location)
        return subprogram is not None and self.is_system_file(subprogram.file)

    def _choose(self, frames: list[Frame]) -> tuple[Frame, bool]:
        if not self._is_runtime:
            for frame in frames:
                if not self.is_system_file(frame.file):
                    return frame, False
        return (frames[0] if frames else _NOWHERE), bool(frames)
