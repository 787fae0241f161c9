"""What several tests share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from recbulc.calibration.episode import Effort

X, Y = sorted(os.sched_getaffinity(0))[:2]  # tests/conftest.py has seen to it that there are two
QUICK = Effort(rounds=2_000, idle_seconds=0.0)
FLAGS = "tsc rdtscp constant_tsc nonstop_tsc hypervisor"


def fake_root(root: Path, *, flags: str = FLAGS, online: str = "0-1", packages: dict[int, int] | None = None) -> Path:
    """A made-up /proc and /sys below `root`."""
    cpuinfo = f"processor\t: 0\nvendor_id\t: Made Up\nmodel name\t: simulated\nflags\t\t: {flags}\n\nprocessor\t: 1\n"
    files = {
        "proc/cpuinfo": cpuinfo,
        "proc/sys/kernel/random/boot_id": "made-up\n",
        "sys/devices/system/cpu/online": f"{online}\n",
    }
    for core, package in (packages or {}).items():
        files[f"sys/devices/system/cpu/cpu{core}/topology/physical_package_id"] = f"{package}\n"
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def recbulc(
    *args: str, clocks: dict | None = None, cores: set[int] | None = None, cache: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does: another process, by its name; `clocks` goes through the test hook."""
    environment = os.environ | {"NO_COLOR": "1"}
    if clocks is not None:
        environment["RECBULC_TEST_CLOCKS"] = json.dumps(clocks)
    if cache is not None:
        environment["XDG_CACHE_HOME"] = str(cache)
    return subprocess.run(
        [Path(sys.executable).parent / "recbulc", *args],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=False,
        preexec_fn=(lambda: os.sched_setaffinity(0, cores)) if cores else None,
    )
