"""How long solving takes, and what the stamps are worth in it.

growth: a lost update grown to 200,000 shared accesses (programs/lost_updates.c), with 2 and 4 threads, plain and with
the delays of a provoked run: CPU seconds of every stage (they use one core) and of all, by what each doubling
multiplies them, and the seconds on the wall. One replay of the schedule beside it.

stamps: the same recording solved with stamps under the sound and the confident bounds, and with none: how many
conflicting pairs are left open before solving, how many choices of a write for a read there are before and after
(ReCBuLC Fig. 8), operations whose place the search had to find, seconds. On the twelve bugs, and on the lost update,
whose values tell who wrote them, and tell little where the totals wrap.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from report import print_machine

from recbulc.calibration.model import Kind as IntervalKind
from recbulc.recorders.trace import Trace
from recbulc.solver import solve as solver
from recbulc.solver.solve import Solution, solve

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from tests.programs.catalogue import BUGS  # noqa: E402 (our programs are beside the tests)

COMMAND = str(Path(sys.executable).parent / "recbulc")
PROGRAM = Path(__file__).parent / "programs/lost_updates.c"
STAGES = {  # of solve(), by the functions it calls; what is left of the time is the search
    "order": ("recording_of", "partial_order", "count_conflicts"),
    "build": ("build_problem",),
    "saturate": ("saturate",),
    "search": ("find_order",),
    "check": ("check_order", "check_stamps"),
    "reduce": ("up_to_failure", "reduce_order"),
    "race": ("find_race",),
    "write": ("write_schedule", "external_writes"),
}
WAYS: dict[str, tuple[bool, IntervalKind]] = {
    "sound": (True, "sound"),
    "confident": (True, "confident"),
    "none": (False, "sound"),
}
SIZES = (12_500, 25_000, 50_000, 100_000, 200_000)
MOST_RUNS = 5_000
MOST_TRIES = 20


@dataclass(frozen=True)
class Solved:
    """One solution, the CPU seconds of its stages, and the conflicting pairs that were left open before it."""

    solution: Solution
    seconds: dict[str, float]
    wall_seconds: float
    pairs: int
    open_pairs: int

    @property
    def total(self) -> float:
        """Of all stages."""
        return sum(self.seconds.values())


def solved(path: Path, *, stamps: bool, interval: IntervalKind, timeout_s: float, out: Path | None = None) -> Solved:
    """Solve a recording, and write the schedule to `out`."""
    spent: dict[str, float] = defaultdict(float)
    counted: list[tuple[int, int]] = []
    began, start = time.perf_counter(), time.process_time()
    trace = Trace.load(path)
    spent["order"] += time.process_time() - start
    with _stopwatches(spent, counted):
        solution = solve(trace, timestamps=stamps, interval=interval, timeout_s=timeout_s)
    if solution.schedule and out:
        start = time.process_time()
        solution.schedule.save(out)
        spent["write"] += time.process_time() - start
    inner = sum(spent[stage] for stage in ("build", "saturate", "check")) + spent["known"]
    seconds = {stage: spent[stage] for stage in STAGES}
    seconds["search"] = max(0.0, spent["search"] - inner)
    pairs, open_pairs = counted[-1] if counted else (0, 0)
    return Solved(solution, seconds, time.perf_counter() - began, pairs, open_pairs)


@contextmanager
def _stopwatches(spent: dict[str, float], counted: list[tuple[int, int]]) -> Iterator[None]:
    """Time what solve() calls."""
    plain = {name: vars(solver)[name] for names in STAGES.values() for name in names if name in vars(solver)}

    def timed(stage: str, name: str) -> Any:  # noqa: ANN401 (functions of any signature)
        def call(*args: Any, **options: Any) -> Any:  # noqa: ANN401
            start = time.process_time()
            try:
                result = plain[name](*args, **options)
                if name == "count_conflicts":
                    counted.append((result.pairs, result.unordered))
                return result
            finally:
                elapsed = time.process_time() - start
                spent[stage] += elapsed
                if name in {"partial_order", "count_conflicts"}:
                    spent["known"] += elapsed  # within find_order

        return call

    for stage, names in STAGES.items():
        for name in names:
            if name in plain:
                setattr(solver, name, timed(stage, name))
    try:
        yield
    finally:
        for name, function in plain.items():
            setattr(solver, name, function)


def recbulc(*args: str) -> str:
    """Run a command as a user does; what it printed."""
    found = subprocess.run([COMMAND, *args], capture_output=True, text=True, check=False)
    said = "--json" in args and found.stdout  # exit 1 with a document: what was asked for did not happen
    if found.returncode and not (found.returncode == 1 and said):
        raise SystemExit(f"recbulc {' '.join(args)}: {found.stderr[-500:]}")
    return found.stdout


def build(folder: Path) -> Path:
    """The grown program."""
    out = folder / "lost_updates"
    recbulc("cc", "-std=gnu11", "-O1", "-g", "-pthread", str(PROGRAM), "-o", str(out))
    return out


def recorded(folder: Path, program: Path, *args: object, options: tuple[str, ...] = ()) -> Path:
    """A recording at RW of a run that failed."""
    out = folder / f"{'-'.join([program.name, *options[1:2], *map(str, args)])}.trace"
    for seed in range(1, MOST_TRIES):
        common = ("--level", "RW", "--timeout", "60s", "--seed", str(seed), "-q", "--json", "--out", str(out))
        document = json.loads(recbulc("record", *common, *options, "--", str(program), *map(str, args)))
        if document["failed"]:
            break
    if document["lost"] or document["clocks"]["modified"] or not document["failed"]:
        clocks = document["clocks"]["modified"]
        print(f"  {out.name}: failed {document['failed']}, threads lost {document['lost']}, clocks modified {clocks}")
    return out


def replay_seconds(schedule: Path) -> tuple[float, str]:
    """Of one replay, without what checks the schedule before; and what came of it."""
    document = json.loads(recbulc("replay", str(schedule), "--times", "3", "-q", "--json"))
    return document["seconds"] / max(document["runs"], 1), f"failed {document['failed']}/{document['runs']}"


def growth(folder: Path, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Seconds of the stages, and the ratio of each doubling."""
    program = build(folder)
    rows: list[dict[str, Any]] = []
    columns = [*STAGES, "in all", "ratio", "wall s", "replay s"]
    print(f"\n{'growth: threads, provoked, accesses':38}" + "".join(f"{name:>10}" for name in columns))
    for workers in (2, 4):
        for provoked in ("plain", "access"):
            before = 0.0
            for size in sizes:
                trace = recorded(folder, program, workers, size, options=("--provoke", provoked))
                out = trace.with_suffix(".schedule")
                found = solved(trace, stamps=True, interval="sound", timeout_s=120, out=out)
                seconds, outcome = replay_seconds(out) if found.solution.schedule else (0.0, found.solution.why)
                accesses, total = found.solution.accesses, found.total
                rows.append(
                    {
                        "threads": workers, "provoked": provoked, "accesses": accesses, "cpu_seconds": total,
                        "wall_seconds": found.wall_seconds,
                        "status": found.solution.status, "stages": found.seconds,
                        "unknowns": found.solution.unknowns, "replay_seconds": seconds, "replays": outcome,
                    }
                )  # fmt: skip
                figures = [*found.seconds.values(), total, total / before if before else 0.0]
                print(
                    f"{workers} threads, {provoked:6} {accesses:>9} {found.solution.status:>9} "
                    + "".join(f"{figure:>10.2f}" for figure in figures)
                    + f"{found.wall_seconds:>10.2f}{seconds:>10.2f}  {outcome}",
                    flush=True,
                )
                before = total
    return rows


def stamps(folder: Path, timeout_s: float) -> list[dict[str, Any]]:
    """Stamps against none."""
    program = build(folder)
    recordings = {}
    for size, *wrap in ((1_000,), (10_000,), (100_000,), (1_000, 4), (10_000, 4)):
        name = f"lost_updates {size}" + "".join(f" mod {turn}" for turn in wrap)
        recordings[name] = recorded(folder, program, 4, size, *wrap, options=("--provoke", "access"))
    for bug in BUGS.values():
        built = bug.build([COMMAND, "c++" if bug.cpp else "cc"], folder / bug.name)
        fail_if = tuple(part for how in bug.fail_if for part in ("--fail-if", how))
        until = ("--provoke", "mixed", "--until-fail", str(MOST_RUNS), *fail_if)
        recordings[bug.name] = recorded(folder, built, options=until)
    print(
        f"\n{'stamps against none':26}{'stamps':10}{'status':>9}{'accesses':>9}{'pairs':>12}{'open':>12}"
        f"{'choices':>12}{'left':>12}{'unknowns':>9}{'build s':>9}{'solve s':>9}"
    )
    rows = []
    for name, trace in recordings.items():
        for way, (stamped, interval) in WAYS.items():
            found = solved(trace, stamps=stamped, interval=interval, timeout_s=timeout_s)
            solution = found.solution
            rows.append(
                {
                    "recording": name, "stamps": way, "status": solution.status, "accesses": solution.accesses,
                    "pairs": found.pairs, "open_pairs": found.open_pairs,
                    "ordered_fraction": solution.ordered_fraction, "choices": solution.constraints_before,
                    "choices_left": solution.constraints, "unknowns": solution.unknowns,
                    "build_seconds": solution.build_seconds, "solve_seconds": solution.solve_seconds,
                    "why": solution.why,
                }
            )  # fmt: skip
            print(
                f"{name:26}{way:10}{solution.status:>9}{solution.accesses:>9}{found.pairs:>12}{found.open_pairs:>12}"
                f"{solution.constraints_before:>12}{solution.constraints:>12}{solution.unknowns:>9}"
                f"{solution.build_seconds:>9.2f}{solution.solve_seconds:>9.2f}",
                flush=True,
            )
    return rows


def main() -> None:
    """Run both, or one of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["growth", "stamps"], help="one part of it")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="shared accesses (default %(default)s)")
    parser.add_argument("--timeout", type=float, default=60.0, help="of one solution, in s (default %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    args = parser.parse_args()
    print_machine()
    document: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        recbulc("calibrate", "-q")  # once for all recordings
        if args.only in {None, "growth"}:
            document["growth"] = growth(folder, tuple(size for size in SIZES if size <= args.largest))
        if args.only in {None, "stamps"}:
            document["stamps"] = stamps(folder, args.timeout)
    if args.json:
        args.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
