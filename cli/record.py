"""Run a program, once or until it fails, and record it.

The program's output is passed on; under --until-fail only that of the failing run. Without --fail-if a run fails by an
exit code other than 0, a signal, a deadlock or --timeout.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from recbulc.cli.console import (
    Speaker,
    add_common,
    clocks_kept_awake,
    core_numbers,
    duration_seconds,
    skews_of_test_hook,
    speaker_of,
)
from recbulc.cli.program import (
    add_run_options,
    level_of,
    passing_on,
    read_stdin,
    seed_of,
    utf8_arguments,
    utf8_environment,
    verdict_of,
)
from recbulc.errors import InputError
from recbulc.recorders.clocks import ClockWatch
from recbulc.recorders.meta import PairSkew
from recbulc.recorders.provoke import STRATEGIES, Mixed, Plan
from recbulc.recorders.record import Recorded, Request, record
from recbulc.recorders.runner import Launch, find_program
from recbulc.recorders.verdict import FailIf
from recbulc.schedule import Verdict
from recbulc.tsc_probe.machine import read_machine
from recbulc.tsc_probe.sequences import SOUND_SEQUENCES

MIXED = "mixed"
MOST_RUNS = 10_000_000
INTERRUPTED = 130


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_common(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="the trace (default: PROG.trace)")
    add_run_options(parser)
    parser.add_argument("--until-fail", type=int, default=0, metavar="N", help="run until it fails, at most N times")
    parser.add_argument(
        "--provoke",
        nargs="?",
        const=MIXED,
        metavar="STRATEGY",
        help=f"perturb the runs: {', '.join(STRATEGIES)} (default: a mix of them)",
    )
    parser.add_argument("--recorder", choices=("local",), default="local", help="(default %(default)s: stamps)")
    parser.add_argument("--stamp", choices=SOUND_SEQUENCES, default="2e", help="stamp sequence (default %(default)s)")
    parser.add_argument("--no-pin", action="store_true", help="let threads move between cores")
    parser.add_argument("--cores", type=str, help="which cores, as 0,1,4 or 0-3 (default: the first four we may use)")
    parser.add_argument("command_line", nargs=argparse.REMAINDER, metavar="-- PROG ARGS")
    parser.epilog = "example:\n  recbulc record --until-fail 1000 --provoke --out bug.trace -- ./bug 4"


def run(args: argparse.Namespace) -> int:
    """Exit 0 when recorded; with --until-fail only when a failing run was."""
    speaker = speaker_of(args)
    request = request_of(args, speaker)
    skews = skews_of_test_hook(speaker)
    clocks = ClockWatch.of_this_machine(skews, core_numbers(args.cores))
    forced = None if args.provoke == MIXED else args.provoke or "plain"
    single = not request.until_fail
    total = max(request.until_fail, 1)
    speaker.note(f"seed {request.seed}")
    with (
        clocks_kept_awake(read_machine(Path(skews.root)), speaker),
        speaker.progress("recording", total) as step,
    ):

        def on_run(_run: int, plan: Plan, verdict: Verdict) -> None:
            step()
            if verdict.failed:
                speaker.detail(f"failed ({verdict.detail}), strategy {plan.strategy}")

        recorded = record(
            request,
            clocks,
            Mixed(request.seed, forced),
            on_run=on_run,
            on_output=passing_on(args.json) if single else None,
            note=speaker.note,
        )
    if not single and recorded.trace.meta.verdict.failed:
        passing_on(args.json)(1, recorded.result.stdout)
        passing_on(args.json)(2, recorded.result.stderr)
    speaker.document(document_of(recorded))
    _show(speaker, recorded)
    if recorded.interrupted:
        return INTERRUPTED
    return 0 if single or recorded.trace.meta.verdict.failed else 1


def request_of(args: argparse.Namespace, speaker: Speaker) -> Request:
    """What the command line asks for."""
    argv = args.command_line[1:] if args.command_line[:1] == ["--"] else args.command_line
    if not argv:
        raise InputError("no program is named", "write it behind --, as in `recbulc record -- ./prog ARGS`")
    if not 0 <= args.until_fail <= MOST_RUNS:
        raise InputError(f"--until-fail {args.until_fail}", f"give 1 to {MOST_RUNS}")
    cwd = Path.cwd()
    program = find_program(argv[0], cwd)
    return Request(
        launch=Launch(program, utf8_arguments(argv), utf8_environment(), cwd, read_stdin(args.stdin, speaker)),
        out=args.out or Path(f"{program.name}.trace"),
        fail_if=FailIf.parse(args.fail_if),
        timeout_s=duration_seconds(args.timeout),
        level=level_of(args.level),
        stamp=args.stamp,
        pin=not args.no_pin,
        until_fail=args.until_fail,
        seed=seed_of(args.seed),
    )


def document_of(recorded: Recorded) -> dict[str, Any]:
    """For programs (CLI.md)."""
    trace, clocks = recorded.trace, recorded.trace.meta.clocks
    return {
        "trace": str(trace.path),
        "failed": trace.meta.verdict.failed,
        "verdict": verdict_of(trace.meta.verdict),
        "runs": recorded.runs,
        "seconds": round(recorded.seconds, 3),
        "events": sum(thread.events for thread in trace.threads),
        "lost": trace.lost,
        "threads": len(trace.threads),
        "level": trace.meta.level,
        "seed": trace.meta.seed,
        "strategy": trace.meta.strategy,
        "clocks": {
            "before": [_skew(pair) for pair in clocks.before],
            "after": [_skew(pair) for pair in clocks.after],
            "modified": clocks.modified,
        },
        "interrupted": recorded.interrupted,
    }


def _skew(pair: PairSkew) -> dict[str, Any]:
    return {
        "cores": list(pair.cores),
        "sound": [pair.sound.lo, pair.sound.hi],
        "confident": [pair.confident.lo, pair.confident.hi],
    }


def _show(speaker: Speaker, recorded: Recorded) -> None:
    trace, verdict = recorded.trace, recorded.trace.meta.verdict
    events = sum(thread.events for thread in trace.threads)
    rate = recorded.runs / recorded.seconds if recorded.seconds else 0.0
    speaker.note(f"{recorded.runs} runs, {rate:.1f} per second; strategy of this one: {trace.meta.strategy}")
    for thread in trace.threads if verdict.how == "deadlock" else ():
        if thread.blocked:
            site = trace.sites.get(thread.blocked.call)
            where = f" at {site.file}:{site.line}" if site else ""
            speaker.note(f"thread {thread.name} waits in {thread.blocked.kind}{where}")
    if trace.lost:
        speaker.warn(f"{trace.lost} threads could not log everything: is the disk full?")
    if trace.meta.clocks.modified:
        speaker.warn(f"the clocks changed during the recording ({trace.meta.clocks.why}): stamps order nothing across")
    outcome = f"failed: {verdict.how} ({verdict.detail})" if verdict.failed else "passed"
    if recorded.interrupted:
        outcome = "interrupted"
    speaker.note(f"{outcome}; {events} events of {len(trace.threads)} threads in {trace.path}")
