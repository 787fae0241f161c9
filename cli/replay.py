"""Enforce a schedule on the program: does it fail again, every time?

Only a run that ends as the recorded one did, and never leaves the schedule, counts as failed. With `-- PROG` the
schedule is tried on another build, such as one with a fix: `passed` (followed without failing), `unreachable` (it
cannot be followed any more) or `failed`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from rich.markup import escape

from recbulc.cli.console import Speaker, add_common, speaker_of
from recbulc.cli.program import leave_program_alone, passing_on
from recbulc.errors import InputError
from recbulc.replay.divergence import Divergence
from recbulc.replay.gdb import run_gdb
from recbulc.replay.rebuild import Rebuilt, find_rebuilt
from recbulc.replay.replay import Replayer, ReplayResult, ReplayRun, replay
from recbulc.schedule import Schedule, load_schedule


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_common(parser)
    parser.add_argument("schedule", type=Path, metavar="SCHEDULE", help="as `recbulc solve` writes it")
    parser.add_argument("--times", type=int, default=1, metavar="N", help="how often (default %(default)s)")
    parser.add_argument("--gdb", action="store_true", help="run it once under gdb, stopped where it fails")
    parser.add_argument(
        "--gdb-command",
        action="append",
        metavar="CMD",
        help="as --gdb, but without a terminal: what gdb is to do once it has stopped (may be repeated)",
    )
    parser.epilog = (
        "after -- stands another build of the program, with its arguments\n\n"
        "examples:\n  recbulc replay bug.schedule --times 100\n  recbulc replay bug.schedule --gdb\n"
        "  recbulc replay bug.schedule --times 20 -- ./fixed"
    )
    leave_program_alone(parser)


def run(args: argparse.Namespace) -> int:
    """Exit 0 only if every run failed the recorded way."""
    speaker = speaker_of(args)
    schedule = load_schedule(args.schedule)
    if args.times < 1:
        raise InputError(f"--times {args.times}", "give a number from 1")
    rebuilt = find_rebuilt(schedule, args.program) if args.program else None
    if args.gdb or args.gdb_command is not None:
        return _run_gdb(args, schedule, rebuilt, speaker)
    started = time.monotonic()
    shown = args.times == 1 or args.verbose
    made: list[ReplayRun] = []
    with speaker.progress("replay", args.times) as step:

        def on_run(run: ReplayRun) -> None:
            made.append(run)
            step()

        try:
            result = replay(
                schedule,
                args.times,
                on_run,
                rebuilt=rebuilt,
                on_output=passing_on(speaker.as_json) if shown else None,
            )
        except KeyboardInterrupt:
            speaker.note(f"failed {sum(run.failed for run in made)}/{len(made)} replays up to now")
            raise
    speaker.document(_document(result, schedule, time.monotonic() - started))
    _show(speaker, result, schedule)
    return 0 if result.runs and result.failed == result.runs and schedule.verdict.failed else 1


def _run_gdb(args: argparse.Namespace, schedule: Schedule, rebuilt: Rebuilt | None, speaker: Speaker) -> int:
    with Replayer(schedule, rebuilt=rebuilt) as replayer:
        result = run_gdb(replayer, args.gdb_command)
    reached = result.divergence is None
    speaker.document(
        {
            "runs": 1,
            "failed": int(reached),
            "diverged": int(not reached),
            "verdict": "failed" if reached else "diverged",
            "first_divergence": _divergence(result.divergence),
            "gdb": result.output,
        }
    )
    speaker.show(escape(result.output))
    if result.divergence:
        speaker.warn(f"the run left the schedule: {result.divergence.message}")
    return 0 if reached else 1


def _document(result: ReplayResult, schedule: Schedule, seconds: float) -> dict[str, Any]:
    return {
        "runs": result.runs,
        "failed": result.failed,
        "diverged": result.diverged,
        "verdict": result.verdict,
        "first_divergence": _divergence(result.first_divergence),
        "recorded": schedule.verdict.how,
        "seconds": round(seconds, 3),
    }


def _divergence(divergence: Divergence | None) -> dict[str, Any] | None:
    if divergence is None:
        return None
    return {
        "thread": divergence.thread,
        "position": divergence.position,
        "reason": divergence.reason.name.lower(),
        "expected": divergence.expected,
        "found": divergence.found,
        "message": divergence.message,
    }


def _show(speaker: Speaker, result: ReplayResult, schedule: Schedule) -> None:
    recorded = schedule.verdict
    how = escape(recorded.detail or recorded.how)
    if not recorded.failed:
        how = "the recorded run passed"
    if result.rebuilt:
        said = {
            "failed": f"fails the recorded way ({how})",
            "passed": "the schedule is followed, and nothing fails",
            "unreachable": "the schedule cannot be followed any more",
        }
        speaker.show(f"[bold]{result.verdict}[/]: {said[result.verdict]}")
    if result.runs:
        speaker.show(f"failed {result.failed}/{result.runs} replays ({how}), {result.diverged} diverged")
    if result.first_divergence:
        speaker.show(f"first divergence: {escape(result.first_divergence.message)}")
