"""What this machine is and which of its cores we may use, as /proc and /sys tell.

`root` stands for `/` everywhere, so that tests can describe machines they do not run on.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from recbulc.errors import InputError, MachineError
from recbulc.tsc_probe.native import hypervisor, lfence_orders


@dataclass(frozen=True)
class Identity:
    """What a clock model belongs to: it says nothing of another machine or another boot."""

    cpu: str
    microcode: str
    hypervisor: str
    boot_id: str
    cores: int


@dataclass(frozen=True)
class Machine:
    """A machine as Linux describes it."""

    identity: Identity
    flags: frozenset[str]
    online: tuple[int, ...]
    allowed: tuple[int, ...]
    package_of: dict[int, int]
    clocksource: str
    lfence_orders: bool

    @property
    def constant_rate(self) -> bool:
        """Does the counter tick at one rate whatever the core's frequency (ReCBuLC §2.2)?"""
        return "constant_tsc" in self.flags

    @property
    def invariant(self) -> bool:
        """Does it also go on in deep C-states?"""
        return self.constant_rate and "nonstop_tsc" in self.flags

    @property
    def is_guest(self) -> bool:
        """May a hypervisor move our cores to other cores of its own?"""
        return "hypervisor" in self.flags

    @property
    def kernel_trusts_tsc(self) -> bool:
        """Does the kernel keep its own time by the counter? Where it found it unstable it has turned away from it."""
        return any(word in self.clocksource for word in ("tsc", "kvm", "hyperv", "xen"))

    def require_clock(self) -> None:
        """Refuse machines whose counters cannot order anything."""
        if not self.constant_rate:
            raise MachineError(
                "the time stamp counter does not tick at a constant rate (no constant_tsc in /proc/cpuinfo)",
                "in a guest, let the hypervisor pass the host's invariant TSC through; otherwise use a newer processor",
            )
        if "rdtscp" not in self.flags:
            raise MachineError(
                "the processor has no RDTSCP instruction, or the hypervisor hides it",
                "in a guest, use the host's CPU model (for example `-cpu host`)",
            )

    def choose_cores(self, wanted: tuple[int, ...] | None) -> tuple[int, ...]:
        """The cores to work on: those asked for, or all we may use; refuses what cannot be pinned."""
        usable = tuple(core for core in self.allowed if core in self.online)
        cores = usable if wanted is None else wanted
        for core in cores:
            if core not in self.online:
                raise MachineError(
                    f"core {core} is off-line or does not exist", f"on-line are {ranges(self.online)}: choose of these"
                )
            if core not in self.allowed:
                raise MachineError(
                    f"core {core} is not in this process's affinity mask",
                    f"choose of {ranges(usable)}, or widen the mask with taskset or the container's cpuset",
                )
        if len(set(cores)) != len(cores):
            raise InputError(f"a core is named twice in {ranges(cores)}", "name every core once")
        if wanted is not None and len(cores) < 2:
            raise MachineError(f"one core ({ranges(cores)}) is named; a skew needs two", "name two or more cores")
        if len(cores) < 2:
            raise MachineError(
                f"only one core ({ranges(cores)}) may be used here; a skew needs two",
                "widen the affinity mask (taskset, cpuset) or give the machine a second core",
            )
        return cores

    def trigger_groups(self, pair: tuple[int, int], cores: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Who may release the flag for this pair (ReCBuLC §3.3.2): one core of every group, equally often.

        For two cores of one processor that is a core of the same processor; for cores of two processors one of each,
        since a flag reaches the nearer of the two first. Empty when a processor has no core to spare: the pair then
        triggers itself in turn.
        """
        packages = sorted({self.package_of.get(core, 0) for core in pair})
        groups = tuple(
            tuple(core for core in cores if core not in pair and self.package_of.get(core, 0) == package)
            for package in packages
        )
        return groups if all(groups) else ()


def read_machine(root: Path = Path("/")) -> Machine:
    """Describe the machine below `root`."""
    info = _first_processor(root)
    flags = frozenset(info.get("flags", "").split())
    allowed = tuple(sorted(os.sched_getaffinity(0)))
    listed = _text(root / "sys/devices/system/cpu/online")
    online = _core_list(listed) if listed else allowed
    identity = Identity(
        cpu=" ".join(info.get(key, "?") for key in ("vendor_id", "cpu family", "model", "stepping", "model name")),
        microcode=info.get("microcode", "?"),
        hypervisor=hypervisor(),
        boot_id=_text(root / "proc/sys/kernel/random/boot_id") or "unknown",
        cores=len(online),
    )
    return Machine(
        identity=identity,
        flags=flags,
        online=online,
        allowed=allowed,
        package_of={core: _package(root, core) for core in online},
        clocksource=_text(root / "sys/devices/system/clocksource/clocksource0/current_clocksource") or "unknown",
        lfence_orders=lfence_orders(),
    )


def suspended_ns() -> int:
    """How long this machine has been suspended since it was booted (ReCBuLC §3.2, scenario 1).

    A suspend resets the counters; two equal values mean that there was none between them.
    """
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)


SUSPEND_NOISE_NS = 1_000_000_000  # two clocks read one after the other, by a process that may be preempted


@contextlib.contextmanager
def deep_sleep_off(machine: Machine) -> Iterator[bool]:
    """Keep cores out of C-states that stop a constant but not invariant counter (ReCBuLC §3.2).

    Yields whether that is so; the request lasts as long as the file is open.
    """
    if machine.invariant:
        yield True
        return
    try:
        latency = Path("/dev/cpu_dma_latency").open("wb", buffering=0)  # noqa: SIM115 (closed below, after the yield)
    except OSError:
        yield False
        return
    with latency:
        latency.write((0).to_bytes(4, "little"))
        yield True


def ranges(cores: tuple[int, ...]) -> str:
    """Cores as Linux writes them: `0-3,8`."""
    parts: list[str] = []
    start = previous = None
    for core in [*sorted(cores), None]:
        if start is None or previous is None:
            start = previous = core
        elif core == previous + 1:
            previous = core
        else:
            parts.append(f"{start}" if start == previous else f"{start}-{previous}")
            start = previous = core
    return ",".join(parts) or "none"


def _core_list(text: str) -> tuple[int, ...]:
    cores: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        cores.extend(range(int(first), int(last or first) + 1))
    return tuple(cores)


def _first_processor(root: Path) -> dict[str, str]:
    info: dict[str, str] = {}
    for line in (_text(root / "proc/cpuinfo") or "").splitlines():
        if not line.strip():
            break
        key, _, value = line.partition(":")
        info[key.strip()] = value.strip()
    return info


def _package(root: Path, core: int) -> int:
    return int(_text(root / f"sys/devices/system/cpu/cpu{core}/topology/physical_package_id") or 0)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return None
