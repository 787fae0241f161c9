"""Do bugs come back? Every program of a folder through `recbulc reproduce`, with several seeds, alone and beside hogs.

For each: runs and seconds until it was recorded, seconds of solving, the rate of replays that failed, whether the named
pair is a true one; and the controls: the fixed twin under provoked runs and under the failing schedule, and schedules
made from passing recordings. Every figure is of this run; `--help` says how to make it longer or shorter.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from report import print_machine

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.programs.catalogue import FOLDER, Bug, load_bugs  # noqa: E402

RECBULC = str(Path(sys.executable).parent / "recbulc")
COMPILERS = {False: [RECBULC, "cc"], True: [RECBULC, "c++"]}


def recbulc(*words: str) -> dict[str, Any]:
    """One command; its document, and its exit code as `exit`."""
    done = subprocess.run(
        [RECBULC, *words[:1], "--json", "-q", *words[1:]], capture_output=True, text=True, check=False
    )
    if not done.stdout.strip():
        return {"exit": done.returncode, "why": done.stderr.strip()}
    return json.loads(done.stdout) | {"exit": done.returncode}


def _spin() -> None:
    while True:
        pass


@contextlib.contextmanager
def hogs(number: int) -> Iterator[None]:
    """So many processes that use a core each."""
    running = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(number)]
    for hog in running:
        hog.start()
    try:
        yield
    finally:
        for hog in running:
            hog.kill()


@dataclass
class Bench:
    """What is measured, and where files go."""

    work: Path
    times: int
    fixed_runs: int
    passing_runs: int

    def reproduce(self, bug: Bug, program: Path, seed: int, number_of_hogs: int) -> dict[str, Any]:
        """One row of the table."""
        out = self.work / f"{bug.name}-{seed}-{number_of_hogs}.recbulc"
        began = time.monotonic()
        with hogs(number_of_hogs):
            found = recbulc(
                "reproduce", "--seed", str(seed), "--out", str(out), "--times", str(self.times), "--budget", "150s",
                *(word for text in bug.fail_if for word in ("--fail-if", text)), "--", str(program),
            )  # fmt: skip
        racing = found.get("racing_pair") or []
        replay = found.get("replay") or {"runs": 0, "failed": 0}
        return {
            "bug": bug.name,
            "seed": seed,
            "hogs": number_of_hogs,
            "runs": found.get("record", {}).get("runs"),
            "recorded s": found.get("record", {}).get("seconds"),
            "ordered": (found.get("order") or {}).get("ordered_fraction"),
            "accesses": (found.get("solve") or {}).get("accesses"),
            "solved s": (found.get("solve") or {}).get("seconds"),
            "failed": replay["failed"],
            "replays": replay["runs"],
            "true pair": bug.is_truth((access["file"], access["line"]) for access in racing),
            "lines": " ".join(str(access["line"]) for access in racing),
            "all s": round(time.monotonic() - began, 1),
            "stopped": f"{found['stopped_at']}: {found['why']}" if found.get("stopped_at") else found.get("why", ""),
            "schedule": found.get("schedule"),
        }

    def controls(self, bug: Bug, program: Path, twin: Path, schedule: str | None) -> dict[str, Any]:
        """What must not fail."""
        fail_if = [word for text in bug.fail_if for word in ("--fail-if", text)]
        out = str(self.work / f"{bug.name}-control.trace")
        fixed = recbulc(
            "record", "--until-fail", str(self.fixed_runs), "--provoke", "--seed", "7", "--out", out, *fail_if, "--",
            str(twin),
        )  # fmt: skip
        on_twin = recbulc("replay", schedule, "--times", "5", "--", str(twin)) if schedule else {}
        passing: dict[str, Any] = {}
        for seed in range(5):
            run = recbulc("record", "--seed", str(seed), "--out", out, *fail_if, "--", str(program))
            if not run.get("failed", True):
                solved = recbulc("solve", out, "--out", f"{out}.schedule")
                if solved["exit"] == 0:
                    passing = recbulc("replay", f"{out}.schedule", "--times", str(self.passing_runs))
                break
        return {
            "bug": bug.name,
            "fixed failed": f"{int(fixed.get('failed', True))}/{fixed.get('runs')}",
            "schedule on twin": on_twin.get("verdict"),
            "passing failed": f"{passing.get('failed')}/{passing.get('runs')}",
            "passing diverged": passing.get("diverged"),
        }


def main() -> None:
    """Measure and print; exit 1 where some program did not come back."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="programs with headers as in tests/programs/bugs")
    parser.add_argument("--bugs", nargs="*", help="only these")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--hogs", type=int, nargs="*", default=[0, 2], help="how many hogs beside it, several rounds")
    parser.add_argument("--times", type=int, default=100, help="replays of each schedule")
    parser.add_argument("--fixed-runs", type=int, default=500, help="provoked runs of each fixed twin; 0: no controls")
    parser.add_argument("--passing-runs", type=int, default=50, help="replays of a schedule that passed")
    parser.add_argument("--csv", type=Path, help="the rows, for later")
    args = parser.parse_args()
    print_machine()
    rows, controls = [], []
    with tempfile.TemporaryDirectory(prefix="recbulc-chain-") as folder:
        bench = Bench(Path(folder), args.times, args.fixed_runs, args.passing_runs)
        for bug in load_bugs(args.folder).values():
            if args.bugs and bug.name not in args.bugs:
                continue
            program = bug.build(COMPILERS[bug.cpp], Path(folder) / bug.name)
            mine = [bench.reproduce(bug, program, 1 + n, h) for h in args.hogs for n in range(args.seeds)]
            rows += mine
            if args.fixed_runs:
                twin = bug.build(COMPILERS[bug.cpp], Path(folder) / f"{bug.name}-fixed", fixed=True)
                schedule = next((row["schedule"] for row in mine if row["schedule"]), None)
                controls.append(bench.controls(bug, program, twin, schedule))
            print(f"{bug.name}: {sum(map(came_back, mine))}/{len(mine)} came back", file=sys.stderr, flush=True)
    table = pd.DataFrame(rows).drop(columns="schedule")
    print(table.to_string(index=False))
    if controls:
        print(pd.DataFrame(controls).to_string(index=False))
    if args.csv:
        table.to_csv(args.csv, index=False)
    back = [came_back(row) for row in rows]
    print(f"came back (every replay failed): {sum(back)}/{len(back)}")
    named = table.groupby("bug")["true pair"].all()
    print(
        f"true pair named: {table['true pair'].sum()}/{len(table)} times, always in {named.sum()}/{len(named)} programs"
    )
    seconds = np.array([row["recorded s"] for row in rows if row["recorded s"] is not None])
    print(f"recorded within: median {np.median(seconds):.1f} s, longest {seconds.max():.1f} s")
    sys.exit(0 if all(back) else 1)


def came_back(row: dict[str, Any]) -> bool:
    """Did every replay fail the recorded way?"""
    return bool(row["replays"]) and row["failed"] == row["replays"]


if __name__ == "__main__":
    main()
