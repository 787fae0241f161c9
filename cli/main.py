"""The `recbulc` command. Only here are errors printed and exit codes chosen."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Protocol, cast

from recbulc import __version__
from recbulc.errors import RecbulcError

INTERRUPTED = 130


class Command(Protocol):
    """A module of this folder."""

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it; the exit code."""


COMPILERS = {"cc": "The C compiler: builds programs that can be recorded.", "c++": "The same for C++."}
COMMANDS = ("doctor", "calibrate", "stability", "record", "trace", "order", "solve", "replay", "reproduce")


def load_commands(words: list[str]) -> dict[str, Command]:
    """The module of the command that is meant, or of all; importing takes a while, in which Ctrl-C must be answered."""
    names = words[:1] if words[:1] and words[0] in COMMANDS else COMMANDS
    return {name: cast(Command, import_module(f"recbulc.cli.{name}")) for name in names}


def build_parser(commands: dict[str, Command]) -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="recbulc",
        description="Record a failing multi-threaded run with local clocks, and get a schedule that fails every time.",
        epilog="exit codes: 0 success, 1 the thing asked for did not happen, 2 bad usage or input, "
        "3 this machine cannot do it, 130 interrupted",
    )
    parser.add_argument("--version", action="version", version=f"recbulc {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMPILERS.items():
        subparsers.add_parser(name, help=summary)
    for name, command in commands.items():
        summary = (command.__doc__ or "").partition("\n")[0]
        sub = subparsers.add_parser(
            name, help=summary, description=summary, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        command.prepare_parser(sub)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run one command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without our arrows shows question marks
    try:
        words = sys.argv[1:] if argv is None else argv
        code = _compile(words) if words[:1] and words[0] in COMPILERS else _command(words)
        sys.stdout.flush()
    except RecbulcError as error:
        print(f"recbulc: error: {error.what}", file=sys.stderr)
        if error.remedy:
            print(f"  what to do: {error.remedy}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("recbulc: interrupted", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:
        # our own output: its reader has gone, or the disk is full; leave nothing to be flushed at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            print(f"recbulc: error: cannot write the output: {error}", file=sys.stderr)
        return 1
    return code


def _command(words: list[str]) -> int:
    commands = load_commands(words)
    args = build_parser(commands).parse_args(words)
    return commands[args.command].run(args)


def _compile(words: list[str]) -> int:
    """The compilers take clang's arguments as they are, and start without what the other commands need."""
    from recbulc.cli import cc  # noqa: PLC0415

    return cc.run(words[1:], cxx=words[0] == "c++")


if __name__ == "__main__":
    sys.exit(main())
