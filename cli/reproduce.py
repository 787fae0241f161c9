"""From a failing program to a schedule that fails every time: record, order, solve, replay.

The program stands behind --; or source files are named, which are built first (what then stands behind -- are the
program's arguments). Without --fail-if a run fails by an exit code other than 0, a signal, a deadlock or --timeout.
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.markup import escape

from recbulc.cli.console import (
    Speaker,
    add_common,
    clocks_kept_awake,
    duration_seconds,
    skews_of_test_hook,
    speaker_of,
)
from recbulc.cli.program import (
    add_run_options,
    leave_program_alone,
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
from recbulc.recorders.provoke import Plan
from recbulc.recorders.record import check_level
from recbulc.recorders.runner import Launch, find_program
from recbulc.recorders.verdict import FailIf
from recbulc.replay.replay import ReplayRun
from recbulc.report.columns import interleaving_table, notes_of
from recbulc.report.findings import racing_sentences, verdict_sentence
from recbulc.report.interleaving import interleave
from recbulc.reproduce import Reproduction, Stage, Task, build_sources, check_sources, reproduce
from recbulc.schedule import Schedule, Verdict
from recbulc.tsc_probe.machine import read_machine

INTERRUPTED = 130
LAST_LINES = 20  # of the program's output


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_common(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="where results go (default: PROG.recbulc)")
    parser.add_argument("--budget", default="5m", metavar="DURATION", help="for all of it (default %(default)s)")
    parser.add_argument("--times", type=int, default=100, metavar="N", help="replays (default %(default)s)")
    add_run_options(parser)
    parser.add_argument("--cflags", default="", metavar="OPTIONS", help="for the compiler of source files")
    parser.add_argument("sources", nargs="*", type=Path, metavar="SOURCE", help="C or C++ files to build and run")
    parser.usage = "recbulc reproduce [OPTIONS] (-- PROG ARGS... | SOURCE... [-- ARGS...])"
    parser.epilog = "examples:\n  recbulc reproduce bug.c\n  recbulc reproduce --budget 10m -- ./bug 4"
    leave_program_alone(parser)


def run(args: argparse.Namespace) -> int:
    """Exit 0 only if every replay failed the recorded way."""
    speaker = speaker_of(args)
    task = task_of(args, speaker)
    skews = skews_of_test_hook(speaker)
    clocks = ClockWatch.of_this_machine(skews)
    speaker.note(f"seed {task.seed}")
    with clocks_kept_awake(read_machine(Path(skews.root)), speaker), Progress(speaker, task.times) as progress:
        found = reproduce(task, clocks, progress)
    speaker.document(document_of(found))
    show(speaker, found)
    if found.interrupted:
        return INTERRUPTED
    return 0 if found.stopped_at is None else 1


def task_of(args: argparse.Namespace, speaker: Speaker) -> Task:
    """What the command line asks for; source files are built here."""
    if not args.sources and not args.program:
        raise InputError("no program is named", "write `recbulc reproduce -- ./prog ARGS`, or name source files")
    if args.times < 1:
        raise InputError(f"--times {args.times}", "give a number from 1")
    fail_if, budget_s, timeout_s = (
        FailIf.parse(args.fail_if),
        duration_seconds(args.budget),
        duration_seconds(args.timeout),
    )
    level, seed = level_of(args.level), seed_of(args.seed)
    cwd = Path.cwd()
    stdin = read_stdin(args.stdin, speaker)
    if args.sources:
        options = compiler_options(args.cflags)
        check_sources(args.sources)
        out = args.out or Path(f"{args.sources[0].stem}.recbulc")
        speaker.note(f"building {', '.join(map(str, args.sources))}")
        program = build_sources(args.sources, out, options)
        argv = [str(program), *args.program]
    else:
        program, argv = find_program(args.program[0], cwd), args.program
        out = args.out or Path(f"{program.name}.recbulc")
    offer_sync(program, args)
    launch = Launch(program, utf8_arguments(argv), utf8_environment(), cwd, stdin)
    return Task(launch, out, fail_if, budget_s, timeout_s, args.times, seed, level)


def compiler_options(text: str) -> list[str]:
    """--cflags, split as a shell would."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(f"--cflags {text!r} cannot be split: {error}", "quote it as a shell would have it") from error


def offer_sync(program: Path, args: argparse.Namespace) -> None:
    """Say how a program that our wrapper did not build can be recorded nevertheless."""
    try:
        check_level(program, level_of(args.level))
    except InputError as error:
        if "not built by" not in error.what:
            raise
        command = shlex.join(["recbulc", "reproduce", "--level", "SYNC", "--", *args.program])
        remedy = f"build it with CC='recbulc cc' CXX='recbulc c++'; or, for its synchronisation alone: {command}"
        raise InputError(error.what, remedy) from error


class Progress:
    """Shows the stages as they come (the Listener of recbulc.reproduce)."""

    def __init__(self, speaker: Speaker, times: int) -> None:
        self.note = speaker.note
        self._speaker = speaker
        self._times = times
        self._bar = contextlib.ExitStack()
        self._step: Callable[[], None] = lambda: None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def begins(self, stage: Stage) -> None:
        """See Listener."""
        if stage == "record":
            self._step = self._bar.enter_context(self._speaker.counting("record: runs"))
        elif stage == "replay":
            self._step = self._bar.enter_context(self._speaker.progress("replay", self._times))

    def ran(self, _run: int, plan: Plan, verdict: Verdict) -> None:
        """See Listener."""
        self._step()
        if verdict.failed:
            self._speaker.detail(f"failed ({verdict.detail}), strategy {plan.strategy}")

    def replayed(self, _run: ReplayRun) -> None:
        """See Listener."""
        self._step()

    def ended(self, stage: Stage, found: Reproduction) -> None:
        """See Listener."""
        self._bar.close()
        if found.stopped_at is None:
            self.note(f"{stage}: {stage_sentence(stage, found)}")


def stage_sentence(stage: Stage, found: Reproduction) -> str:
    """What a stage came to."""
    if stage == "record" and found.recorded:
        trace = found.recorded.trace
        events = sum(thread.events for thread in trace.threads)
        return (
            f"run {found.runs} failed after {found.record_seconds:.1f} s ({verdict_sentence(trace.meta.verdict)}); "
            f"{events} events of {len(trace.threads)} threads"
        )
    if stage == "order" and found.ordered:
        ordered = found.ordered
        return (
            f"stamps and synchronisation order {ordered.ordered} of {ordered.conflicting_pairs} conflicting pairs "
            f"({100 * ordered.ordered_fraction:.1f} %)"
        )
    if stage == "solve" and found.solution:
        solution = found.solution
        seconds = solution.build_seconds + solution.solve_seconds
        return f"{solution.accesses} accesses in one order, {solution.switches} context switches ({seconds:.2f} s)"
    assert found.replayed
    return f"failed {found.replayed.failed}/{found.replayed.runs} replays"


def show(speaker: Speaker, found: Reproduction) -> None:
    """The result for people, as far as it went."""
    if found.recorded and found.recorded.trace.meta.clocks.modified:
        why = found.recorded.trace.meta.clocks.why
        speaker.warn(f"the clocks changed during the recording ({why}): stamps order nothing across cores")
    if found.recorded and found.verdict and found.verdict.failed and not speaker.quiet:
        result = found.recorded.result
        for name, output in (("stdout", result.stdout), ("stderr", result.stderr)):
            if output:
                lines = output.splitlines(keepends=True)
                last = f" (the last {LAST_LINES} of {len(lines)} lines)" if len(lines) > LAST_LINES else ""
                speaker.note(f"the failing run's {name}{last}:")
                shown = b"".join(lines[-LAST_LINES:])
                passing_on(as_json=True)(2, shown if shown.endswith(b"\n") else shown + b"\n")
    if found.schedule:
        show_schedule(speaker, found.schedule)
    if found.verdict and found.verdict.failed:
        speaker.show(f"[bold]verdict:[/] {escape(verdict_sentence(found.verdict))}")
    if found.replayed:
        replayed = found.replayed
        speaker.show(f"[bold]failed {replayed.failed}/{replayed.runs} replays[/]")
    if found.stopped_at:
        speaker.show(f"[bold red]stopped at {found.stopped_at}:[/] {escape(found.why)}")
        if found.remedy:
            speaker.show(f"  what to do: {escape(found.remedy)}")
        if found.recorded:
            speaker.show(f"the recording: {escape(str(found.recorded.trace.path))}")
    if found.replayed and found.replayed.failed:
        path = shlex.quote(str(found.schedule_path))
        speaker.show(f"replay it:   recbulc replay {escape(path)} --times {found.task.times}")
        speaker.show(f"open in gdb: recbulc replay {escape(path)} --gdb")


def show_schedule(speaker: Speaker, schedule: Schedule) -> None:
    """The interleaving, and what raced."""
    interleaving = interleave(schedule)
    if interleaving.rows:
        speaker.show(interleaving_table(interleaving))
    else:
        speaker.show("the interleaving has no source lines: build with `recbulc cc` to see them")
    for note in notes_of(interleaving):
        speaker.warn(note)
    for sentence in racing_sentences(schedule):
        speaker.show(escape(sentence))


def document_of(found: Reproduction) -> dict[str, Any]:
    """For programs (CLI.md)."""
    recorded, ordered, solution, replayed = found.recorded, found.ordered, found.solution, found.replayed
    racing = found.schedule.racing if found.schedule else ()
    return {
        "verdict": verdict_of(found.verdict) if found.verdict else None,
        "trace": str(recorded.trace.path) if recorded else None,
        "schedule": str(found.schedule_path) if found.schedule_path else None,
        "program": str(found.task.launch.program),
        "seed": found.task.seed,
        "record": {"runs": found.runs, "seconds": round(found.record_seconds, 3)},
        "order": {"ordered_fraction": ordered.ordered_fraction, "seconds": round(ordered.seconds, 3)}
        if ordered
        else None,
        "solve": {
            "status": solution.status,
            "seconds": round(solution.build_seconds + solution.solve_seconds, 3),
            "accesses": solution.accesses,
        }
        if solution
        else None,
        "replay": {"runs": replayed.runs, "failed": replayed.failed, "diverged": replayed.diverged}
        if replayed
        else None,
        "racing_pair": [
            {
                "file": access.file,
                "line": access.line,
                "thread": access.thread,
                "kind": access.kind,
                "function": access.function,
                "object": access.object,
                "value": access.value,
            }
            for access in racing
        ],
        "stopped_at": found.stopped_at,
        "why": found.why,
        "remedy": found.remedy,
        "interrupted": found.interrupted,
    }
