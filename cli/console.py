"""How commands speak: results on stdout, progress and remarks on stderr, one JSON document where asked for."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from recbulc.errors import InputError
from recbulc.tsc_probe.machine import Machine, deep_sleep_off
from recbulc.tsc_probe.skew import ENVIRONMENT, Skews

PLAIN_WIDTH = 120  # of tables in files and pipes
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "": 1.0}


class Speaker:
    """The voice of one command."""

    def __init__(self, *, quiet: bool, verbose: bool, as_json: bool) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self._verbose = verbose
        self._out = Console(highlight=False, width=None if sys.stdout.isatty() else PLAIN_WIDTH)
        self._err = Console(stderr=True, highlight=False, soft_wrap=True)

    def show(self, *what: Any) -> None:  # noqa: ANN401 (whatever rich can print)
        """A result for people; text is not broken into lines, so that a path or a command can be copied."""
        if not self.as_json:
            self._out.print(*what, soft_wrap=all(isinstance(part, str) for part in what))

    def document(self, document: dict[str, Any]) -> None:
        """The result for programs: exactly one line on stdout."""
        if self.as_json:
            print(json.dumps(document), flush=True)

    def note(self, text: str) -> None:
        """A remark that a quiet user does not want."""
        if not self.quiet:
            self._err.print(text, markup=False)

    def detail(self, text: str) -> None:
        """A remark for those who asked for more."""
        if self._verbose:
            self._err.print(text, markup=False)

    def warn(self, text: str) -> None:
        """Something the user must know; shown even when quiet."""
        self._err.print(f"recbulc: warning: {text}", markup=False, style="yellow")

    @contextlib.contextmanager
    def progress(self, what: str, total: int) -> Iterator[Callable[[], None]]:
        """A bar on a terminal, a line at the start and every quarter elsewhere; yields the step function."""
        if self.quiet:
            yield lambda: None
        elif self._err.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            with Progress(*columns, console=self._err, transient=True) as bar:
                task = bar.add_task(what, total=total)
                yield lambda: bar.advance(task)
        else:
            yield self._plain_steps(what, total)

    @contextlib.contextmanager
    def counting(self, what: str) -> Iterator[Callable[[], None]]:
        """As progress, where nobody knows how many steps there will be; a line for 1, 10, 100 ... elsewhere."""
        if self.quiet:
            yield lambda: None
        elif self._err.is_terminal:
            columns = (SpinnerColumn(), TextColumn("{task.description}: {task.completed:.0f}"), TimeElapsedColumn())
            with Progress(*columns, console=self._err, transient=True) as bar:
                task = bar.add_task(what, total=None)
                yield lambda: bar.advance(task)
        else:
            yield self._plain_count(what)

    def _plain_count(self, what: str) -> Callable[[], None]:
        done, shown = 0, 10
        self.note(f"{what} ...")

        def step() -> None:
            nonlocal done, shown
            done += 1
            if done == shown:
                self.note(f"{what}: {done}")
                shown *= 10

        return step

    def _plain_steps(self, what: str, total: int) -> Callable[[], None]:
        done = 0
        self.note(f"{what} ...")

        def step() -> None:
            nonlocal done
            done += 1
            if done * 4 // total > (done - 1) * 4 // total:
                self.note(f"{what}: {done}/{total}")

        return step


def add_common(parser: argparse.ArgumentParser) -> None:
    """The options that every command has."""
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout, and nothing else there")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, no remarks")
    parser.add_argument("-v", "--verbose", action="store_true", help="more remarks")


def speaker_of(args: argparse.Namespace) -> Speaker:
    """The voice that the common options ask for."""
    return Speaker(quiet=args.quiet, verbose=args.verbose, as_json=args.json)


def duration_seconds(text: str) -> float:
    """DURATION: seconds, or `500ms`, `90s`, `10m`, `2h`, `10d`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|)", text)
    if match is None or float(match[1]) == 0:
        raise InputError(f"{text!r} is not a duration", "write seconds, or 500ms, 90s, 10m, 2h, 10d")
    return float(match[1]) * UNITS[match[2]]


def core_numbers(text: str | None) -> tuple[int, ...] | None:
    """--cores: `0,1,4` or `0-3`; None where the option is not given."""
    if text is None:
        return None
    cores: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", part)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise InputError(f"{text!r} names no cores", "write them as 0,1,4 or 0-3")
        cores.extend(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(cores)


@contextlib.contextmanager
def clocks_kept_awake(machine: Machine, speaker: Speaker) -> Iterator[None]:
    """Deep C-states off where they would stop the counters, with a warning; nothing where they would not."""
    with deep_sleep_off(machine) as awake:
        if not machine.invariant:
            how = "deep C-states are kept off" if awake else "deep C-states could not be kept off (root may do it)"
            speaker.warn(f"the TSC is constant but not invariant: it may stop in deep C-states; {how}")
        yield


def skews_of_test_hook(speaker: Speaker) -> Skews:
    """What the test hook asks for; it never goes unsaid."""
    skews = Skews.from_environment()
    if skews.injected:
        speaker.warn(f"{ENVIRONMENT} is set: these clocks are changed by software, for tests only")
    return skews
