"""What counts as a failure: the predicates of --fail-if, judged over a finished run.

`exit` (any code but 0; `exit:3` only that), `signal` (`signal:SEGV`), `timeout`, `deadlock`, `regex:PATTERN` (found in
what the program wrote to stdout or stderr) and `cmd:COMMAND` (exits 0 when it is given stdout and stderr to read).
The first that holds, in the order given, is the verdict.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from recbulc.errors import InputError
from recbulc.recorders.runner import Launch, RunResult
from recbulc.schedule import Verdict

DEFAULT = ("signal", "deadlock", "timeout", "exit")
KINDS = ("exit", "signal", "timeout", "deadlock", "regex", "cmd")
REMEDY = "write exit, exit:CODE, signal, signal:NAME, timeout, deadlock, regex:PATTERN or cmd:COMMAND"
CMD_TIMEOUT_S = 60.0
SHELL_TROUBLE = (126, 127)  # not executable, not found


@dataclass(frozen=True)
class Predicate:
    """One --fail-if; `argument` is what stands behind its colon."""

    kind: str
    argument: str = ""

    @classmethod
    def parse(cls, text: str) -> Predicate:
        """From the command line; says what is wrong with it."""
        kind, colon, argument = text.partition(":")
        needs, takes = kind in {"regex", "cmd"}, kind not in {"timeout", "deadlock"}
        if kind not in KINDS or (needs and not argument) or (colon and not (takes and argument)):
            raise InputError(f"--fail-if {text!r} is no predicate", REMEDY)
        predicate = cls(kind, argument)
        if kind == "regex":
            predicate.pattern()
        elif kind == "exit" and argument and not argument.isdecimal():
            raise InputError(f"--fail-if {text!r}: {argument!r} is no exit code", REMEDY)
        elif kind == "signal" and argument:
            predicate.signal_number()
        return predicate

    def pattern(self) -> re.Pattern[bytes]:
        """Of a regex."""
        try:
            return re.compile(os.fsencode(self.argument), re.MULTILINE)
        except re.error as error:
            raise InputError(f"--fail-if regex:{self.argument}: {error}", "see the syntax of Python's re") from error

    def signal_number(self) -> int:
        """Of `signal:SEGV`, `signal:SIGSEGV` or `signal:11`."""
        if self.argument.isdecimal():
            return int(self.argument)
        try:
            return signal.Signals[f"SIG{self.argument.upper().removeprefix('SIG')}"]
        except KeyError as error:
            raise InputError(f"--fail-if signal:{self.argument}: no such signal", "write SEGV, ABRT, ...") from error

    def holds(self, run: RunResult, launch: Launch) -> str | None:
        """What is to be said about it if this run failed this way; None if it did not."""
        if self.kind == "regex":
            found = self.pattern().search(run.stdout) or self.pattern().search(run.stderr)
            return found[0].decode(errors="replace") if found else None
        if self.kind == "cmd":
            return self._command_holds(run, launch)
        # a deadlock is a time-out that we did not wait for
        met = run.how == self.kind or (self.kind == "timeout" and run.how == "deadlock")
        if met and self.kind == "exit":
            met = run.code == int(self.argument) if self.argument else run.code != 0
        elif met and self.kind == "signal" and self.argument:
            met = run.code == self.signal_number()
        return describe(run) if met else None

    def _command_holds(self, run: RunResult, launch: Launch) -> str | None:
        env = launch.env | {"RECBULC_HOW": run.how, "RECBULC_CODE": str(run.code)}
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", self.argument],
                input=run.stdout + run.stderr,
                capture_output=True,
                env=env,
                cwd=launch.cwd,
                timeout=CMD_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise InputError(
                f"--fail-if cmd:{self.argument} took over {CMD_TIMEOUT_S:.0f} s", "give a faster one"
            ) from error
        if done.returncode in SHELL_TROUBLE:
            said = done.stderr.decode(errors="replace").strip()
            raise InputError(f"--fail-if cmd:{self.argument} cannot be run: {said}", "check the command")
        said = (done.stdout or done.stderr).decode(errors="replace").strip()
        return (said or self.argument) if done.returncode == 0 else None


@dataclass(frozen=True)
class FailIf:
    """All predicates of a recording."""

    texts: tuple[str, ...]
    predicates: tuple[Predicate, ...]

    @classmethod
    def parse(cls, texts: Sequence[str]) -> FailIf:
        """From the command line; without any, what CLI.md says fails by default."""
        chosen = tuple(texts) or DEFAULT
        return cls(chosen, tuple(Predicate.parse(text) for text in chosen))

    def judge(self, run: RunResult, launch: Launch) -> Verdict:
        """The verdict, as far as the run itself tells; `blocked` names CALL sites by their global number (−1: none)."""
        for predicate in self.predicates:
            detail = predicate.holds(run, launch)
            if detail is not None:
                blocked = tuple((b.name, b.kind_name, b.call or -1) for b in run.blocked)
                return Verdict(predicate.kind, run.code, self.texts, detail, blocked=blocked)
        return Verdict("passed", run.code, self.texts, "" if run.how == "exit" and run.code == 0 else describe(run))


def describe(run: RunResult) -> str:
    """How a run ended, in a few words."""
    return {
        "exit": f"exit code {run.code}",
        "signal": signal_name(run.code),
        "timeout": f"not finished after {run.seconds:.3g} s",
        "deadlock": f"{len(run.blocked)} threads wait for ever" if len(run.blocked) > 1 else "a thread waits for ever",
    }[run.how]


def signal_name(number: int) -> str:
    """`SIGSEGV`; its number where it has no name."""
    return signal.Signals(number).name if number in signal.Signals.__members__.values() else f"signal {number}"
