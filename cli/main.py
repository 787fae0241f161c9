"""The `recbulc` command. Only here are errors printed and exit codes chosen."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Protocol

from recbulc import __version__
from recbulc.cli import calibrate, doctor, stability
from recbulc.errors import RecbulcError

INTERRUPTED = 130


class Command(Protocol):
    """A module of this folder."""

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it; the exit code."""


COMMANDS: dict[str, Command] = {"doctor": doctor, "calibrate": calibrate, "stability": stability}


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="recbulc",
        description="Record a failing multi-threaded run with local clocks, and get a schedule that fails every time.",
        epilog="exit codes: 0 success, 1 the thing asked for did not happen, 2 bad usage or input, "
        "3 this machine cannot do it",
    )
    parser.add_argument("--version", action="version", version=f"recbulc {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        summary = (command.__doc__ or "").partition("\n")[0]
        sub = commands.add_parser(
            name, help=summary, description=summary, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        command.prepare_parser(sub)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run one command line."""
    args = build_parser().parse_args(argv)
    try:
        code = COMMANDS[args.command].run(args)
        sys.stdout.flush()
    except RecbulcError as error:
        print(f"recbulc: error: {error.what}", file=sys.stderr)
        if error.remedy:
            print(f"  what to do: {error.remedy}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("recbulc: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone; leave nothing to be flushed at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
