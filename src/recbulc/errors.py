"""Every error a user can meet: what happened and what to do next.

Library code raises these; only `recbulc.cli.main` prints them and turns them into exit codes.
"""

from __future__ import annotations

from typing import ClassVar


class RecbulcError(Exception):
    """Something a user can act on. `what` is one sentence, `remedy` says what to do about it."""

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy


class InputError(RecbulcError):
    """Bad usage or a bad file."""

    exit_code = 2


class MachineError(RecbulcError):
    """This machine cannot do what was asked."""

    exit_code = 3
