"""Find an interleaving that explains a recording, and write it as a schedule.

Every value that was read has its write, every call its result; an independent walk through the trace confirms it before
anything is written.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from rich.markup import escape

from recbulc.cli.console import Speaker, add_common, duration_seconds, speaker_of
from recbulc.errors import InputError
from recbulc.recorders.trace import Trace
from recbulc.schedule import is_schedule
from recbulc.solver.solve import Solution, solve

SUFFIX = ".schedule"


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_common(parser)
    parser.add_argument("trace", type=Path, metavar="TRACE", help="the recording")
    parser.add_argument("--out", type=Path, metavar="FILE", help=f"the schedule (default TRACE{SUFFIX})")
    parser.add_argument("--no-timestamps", action="store_true", help="as if there were no stamps: CLAP alone")
    parser.add_argument(
        "--interval",
        choices=("sound", "confident"),
        default="sound",
        help="which bounds of the clocks to go by (default %(default)s)",
    )
    parser.add_argument(
        "--memory-model", choices=("sc", "tso"), default="sc", help="tso is unsupported so far (default %(default)s)"
    )
    parser.add_argument("--timeout", default="60", metavar="T", help="give up after this long (default %(default)s s)")
    parser.add_argument(
        "--engine",
        choices=("frontier", "z3"),
        default="frontier",
        help="frontier: search in stamp order, z3 only where that is stuck; z3: all that is open (default %(default)s)",
    )
    parser.epilog = "example:\n  recbulc solve bug.trace --out bug.schedule"


def run(args: argparse.Namespace) -> int:
    """Exit 0 when a schedule was written."""
    speaker = speaker_of(args)
    timeout_s = duration_seconds(args.timeout)
    named = args.trace if args.trace.name else args.trace.resolve()  # `.` has none
    out = args.out or named.with_name(args.trace.resolve().name + SUFFIX)
    if not out.parent.is_dir():
        raise InputError(f"{out.parent} is no directory", "create it, or choose another --out")
    if out.is_dir() or (out.exists() and not is_schedule(out)):
        raise InputError(f"{out} is there and is no schedule", "choose another --out, or remove it first")
    trace = Trace.load(args.trace)
    if args.memory_model == "tso":
        solution = Solution(status="unsupported", why="orders of the store buffer (tso) are not searched yet; use sc")
    else:
        speaker.note(f"solving {args.trace} ...")
        solution = solve(
            trace,
            timestamps=not args.no_timestamps,
            interval=args.interval,
            timeout_s=timeout_s,
            engine=args.engine,
        )
    if solution.schedule:
        solution.schedule.save(out)
    for name in solution.external:
        speaker.warn(f"no recorded write explains {name}")
    speaker.document(
        {
            "status": solution.status,
            "schedule": str(out) if solution.schedule else None,
            "accesses": solution.accesses,
            "unknowns": solution.unknowns,
            "constraints_before": solution.constraints_before,
            "constraints": solution.constraints,
            "build_seconds": solution.build_seconds,
            "solve_seconds": solution.solve_seconds,
            "ordered_fraction": solution.ordered_fraction,
            "external": list(solution.external),
            "switches": solution.switches,
            "windows": solution.windows,
            "z3_seconds": solution.z3_seconds,
            "why": solution.why,
        }
    )
    _show(speaker, solution, out)
    return 0 if solution.schedule else 1


def _show(speaker: Speaker, solution: Solution, out: Path) -> None:
    if not solution.schedule:
        speaker.show(escape(f"{solution.status}: {solution.why}"))
        return
    seconds = solution.build_seconds + solution.solve_seconds
    speaker.show(
        f"{solution.accesses} shared accesses, {solution.ordered_fraction:.2%} of conflicting pairs ordered before; "
        f"{solution.constraints_before} choices of a write came down to {solution.constraints}; "
        f"solved in {seconds:.2f} s with {solution.switches} switches between threads"
    )
    speaker.show(f"schedule: {escape(str(out))}")
    speaker.show(f"replay it: recbulc replay {escape(shlex.quote(str(out)))} --times 100")
