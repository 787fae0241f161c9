"""The observed program on a command line: what is run, how one run goes, what it reads and writes."""

from __future__ import annotations

import argparse
import os
import secrets
import select
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recbulc.cli.console import Speaker
from recbulc.errors import InputError
from recbulc.recorders.control import Level
from recbulc.recorders.runner import OnOutput
from recbulc.schedule import Verdict

STDIN_PATIENCE_S = 0.5  # a pipe that nobody writes to and nobody closes must not keep us for ever


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """What says how one run goes and what its failing is."""
    parser.add_argument("--level", type=str, help="SYNC, FUNC, FUNCLOOP or RW (default RW)")
    parser.add_argument("--seed", type=int, help="of what is drawn by chance (default: drawn, and printed)")
    parser.add_argument("--timeout", type=str, default="10s", metavar="T", help="of one run (default %(default)s)")
    parser.add_argument(
        "--fail-if",
        action="append",
        default=[],
        metavar="HOW",
        help="exit[:CODE], signal[:NAME], timeout, deadlock, regex:PATTERN or cmd:COMMAND (several: any of them)",
    )
    parser.add_argument("--stdin", metavar="FILE", help="what the program reads; - waits for our own to end")


def leave_program_alone(parser: argparse.ArgumentParser) -> None:
    """What stands behind `--` becomes `args.program`: it is not ours to parse, whatever stands before it.

    argparse itself gives a positional of any length its share as soon as it meets the one before, and refuses the rest.
    """
    parse = parser.parse_known_args

    def parse_own(args: Sequence[str], namespace: argparse.Namespace | None) -> tuple[argparse.Namespace, list[str]]:
        own = list(args)
        program = []
        if "--" in own:
            place = own.index("--")
            own, program = own[:place], own[place + 1 :]
        parsed, unknown = parse(own, namespace)
        parsed.program = program
        return parsed, unknown

    parser.parse_known_args = parse_own  # type: ignore[method-assign,assignment]


def level_of(text: str | None) -> Level | None:
    """--level; None for the default."""
    if text is None:
        return None
    if text.upper() not in Level.__members__:
        raise InputError(f"there is no level {text!r} here", f"choose of {', '.join(Level.__members__)}")
    return Level[text.upper()]


def seed_of(seed: int | None) -> int:
    """--seed, or one drawn by chance."""
    if seed is not None and not 0 <= seed < 1 << 63:
        raise InputError(f"the seed {seed}", "give one from 0 to 2^63 − 1")
    return secrets.randbits(32) if seed is None else seed


def utf8_arguments(argv: Sequence[str]) -> tuple[str, ...]:
    """Arguments that a JSON file can hold."""
    for argument in argv:
        if not _is_utf8(argument):
            raise InputError(f"the argument {argument!a} is not in UTF-8", "a trace cannot hold it")
    return tuple(argv)


def utf8_environment() -> dict[str, str]:
    """Our environment, as far as a JSON file can hold it: what a recording and its replays have in common."""
    return {name: value for name, value in os.environ.items() if _is_utf8(name + value)}


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_stdin(source: str | None, speaker: Speaker) -> bytes:
    """What every run reads: a file, or our own standard input where it is no terminal and has something to say."""
    if source not in {None, "-"}:
        try:
            return Path(str(source)).read_bytes()
        except OSError as error:
            raise InputError(f"cannot read {source}: {error.strerror}", "check --stdin") from error
    try:
        kind = os.fstat(0).st_mode
    except OSError:  # closed
        return b""
    waits = stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)
    if source is None and (stat.S_ISCHR(kind) or (waits and not select.select([0], [], [], STDIN_PATIENCE_S)[0])):
        if waits:
            speaker.note("nothing on standard input: the program reads none (--stdin - waits for it)")
        return b""
    return sys.stdin.buffer.read()


def passing_on(as_json: bool) -> OnOutput:
    """The program's output on ours; all on stderr where stdout is for a JSON document."""

    def write(stream: int, chunk: bytes) -> None:
        target = sys.stdout.buffer if stream == 1 and not as_json else sys.stderr.buffer
        target.write(chunk)
        target.flush()

    return write


def verdict_of(verdict: Verdict) -> dict[str, Any]:
    """A verdict in a JSON document."""
    return {
        "how": verdict.how,
        "code": verdict.code,
        "detail": verdict.detail,
        "thread": verdict.thread,
        "blocked": [{"thread": thread, "kind": kind} for thread, kind, _ in verdict.blocked],
    }
