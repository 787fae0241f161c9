"""Tell what this machine can do; every failed check comes with its remedy."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from recbulc.calibration.calibrate import calibrate
from recbulc.calibration.episode import Effort
from recbulc.cli.console import Speaker, add_common, clocks_kept_awake, skews_of_test_hook, speaker_of
from recbulc.errors import MachineError
from recbulc.tsc_probe.counter import Granule, measure_frequency_hz, measure_granule
from recbulc.tsc_probe.litmus import CHUNK, ROUNDS, LitmusResult, run_litmus
from recbulc.tsc_probe.machine import Machine, ranges, read_machine
from recbulc.tsc_probe.native import NativeProber
from recbulc.tsc_probe.rounds import Shape
from recbulc.tsc_probe.sequences import SEQUENCES

NOT_ESSENTIAL = {"invariant TSC", "LFENCE", "kernel's clock", "compiler"}


@dataclass(frozen=True)
class Check:
    """One thing looked at."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_common(parser)
    parser.add_argument("--litmus", action="store_true", help="count the orders that each stamp sequence gets wrong")
    parser.epilog = "example:\n  recbulc doctor --litmus"


def run(args: argparse.Namespace) -> int:
    """Exit 0 when nothing essential is missing, else 3."""
    speaker = speaker_of(args)
    skews = skews_of_test_hook(speaker)
    machine = read_machine(Path(skews.root))
    prober = NativeProber(skews)
    checks, granule, hz = look(machine, prober, skews.width_bits)
    compiler = find_compiler()
    checks.append(
        Check("compiler", True, compiler)
        if compiler
        else Check("compiler", False, "no C compiler found", "install one: apt-get install gcc")
    )
    usable = all(check.ok for check in checks if check.name not in NOT_ESSENTIAL)
    litmus = _litmus(machine, prober, skews.width_bits, speaker) if args.litmus and usable else []
    if args.litmus and not usable:
        speaker.note("the litmus test is left out: it needs what the failed checks name")
    speaker.document(
        {
            "cores": list(machine.online),
            "allowed_cores": list(machine.allowed),
            "machine": asdict(machine.identity),
            "tsc": {
                "invariant": machine.invariant,
                "constant": machine.constant_rate,
                "granularity_ticks": granule.ticks if granule else None,
                "hz": hz,
            },
            "compiler": compiler,
            "injected": skews.injected,
            "checks": [asdict(check) for check in checks],
            "litmus": [
                {"sequence": r.sequence, "rounds": r.rounds, "violations": r.violations, "ns": round(r.ns, 2)}
                for r in litmus
            ],
        }
    )
    _show(speaker, machine, checks, litmus)
    broken = [result.sequence for result in litmus if result.promised and result.violations]
    if broken:
        raise MachineError(
            f"the stamp sequences {', '.join(broken)} claimed wrong orders on this machine",
            "do not trust recordings made here, and report this with the output of `recbulc doctor --litmus --json`",
        )
    return 0 if usable else MachineError.exit_code


def look(machine: Machine, prober: NativeProber, width_bits: int) -> tuple[list[Check], Granule | None, float | None]:
    """All checks, and what the counter is like where it can be read at all."""
    checks = []
    usable = tuple(core for core in machine.allowed if core in machine.online)
    checks.append(
        Check("cores", True, f"{ranges(usable)} of {ranges(machine.online)} may be used")
        if len(usable) >= 2
        else Check(
            "cores",
            False,
            f"only {ranges(usable)} of {ranges(machine.online)} may be used",
            "widen the affinity mask (taskset, cpuset) or give the machine a second core",
        )
    )
    granule = hz = None
    try:
        machine.require_clock()
    except MachineError as error:
        checks.append(Check("TSC", False, error.what, error.remedy))
    else:
        granule = measure_granule(prober, usable)
        hz = measure_frequency_hz(prober, usable[0], width_bits)
        detail = f"constant rate, {hz / 1e6:.3f} MHz, in steps of {granule.ticks} ticks"
        checks.append(Check("TSC", True, detail))
    checks.append(
        Check("invariant TSC", True, "goes on in every C-state")
        if machine.invariant
        else Check(
            "invariant TSC",
            False,
            "may stop in deep C-states (no nonstop_tsc in /proc/cpuinfo)",
            "run as root, so that recbulc can keep deep C-states off while it works (/dev/cpu_dma_latency)",
        )
    )
    checks.append(
        Check("LFENCE", True, "holds back the clock read behind it")
        if machine.lfence_orders
        else Check(
            "LFENCE",
            False,
            "nothing confirms that it holds back the clock read behind it; bounds come from testers without it",
            "in a guest, let the hypervisor show CPUID 80000021h to it",
        )
    )
    checks.append(
        Check("kernel's clock", True, machine.clocksource)
        if machine.kernel_trusts_tsc
        else Check(
            "kernel's clock",
            False,
            f"is {machine.clocksource}: the kernel may have found the TSC unstable",
            "look for `tsc` in dmesg, and calibrate often (`recbulc calibrate --compare`)",
        )
    )
    checks.append(Check("host", True, _host(machine)))
    return checks, granule, hz


def find_compiler() -> str | None:
    """The C compiler that is there, by its own first line."""
    for name in ("clang", "cc", "gcc"):
        path = shutil.which(name)
        if path is not None:
            told = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
            return told.partition("\n")[0] or path
    return None


def _host(machine: Machine) -> str:
    if not machine.is_guest:
        return "bare metal"
    return f"a guest of {machine.identity.hypervisor}: its cores may move on their host, and their skew with them"


def _litmus(machine: Machine, prober: NativeProber, width_bits: int, speaker: Speaker) -> list[LitmusResult]:
    x, y = machine.choose_cores(None)[:2]
    total = len(SEQUENCES) * len(Shape) * (ROUNDS // CHUNK)
    with clocks_kept_awake(machine, speaker), speaker.progress("litmus", total) as step:
        model = calibrate(machine, prober, (x, y), effort=Effort(rounds=20_000), width_bits=width_bits)
        hi = model.interval(x, y).hi
        speaker.detail(f"claims are made beyond +{hi} ticks, the sound bound of the cores {x} and {y}")
        return run_litmus(prober, (x, y), hi, width_bits, on_chunk=step)


def _show(speaker: Speaker, machine: Machine, checks: list[Check], litmus: list[LitmusResult]) -> None:
    table = Table(title=machine.identity.cpu, title_justify="left")
    for column in ("check", "", "what was found", "remedy"):
        table.add_column(column)
    for check in checks:
        table.add_row(check.name, "[green]ok[/]" if check.ok else "[red]no[/]", check.detail, check.remedy)
    speaker.show(table)
    if litmus:
        speaker.show(litmus_table(litmus))


def litmus_table(litmus: list[LitmusResult]) -> Table:
    """Rounds and wrong claims per sequence."""
    table = Table(title="orders that a stamp sequence claimed wrongly", title_justify="left")
    for column in ("sequence", "ns per stamp", "rounds", "wrong", ""):
        table.add_column(column, justify="right" if column not in {"sequence", ""} else "left")
    for result in litmus:
        row: list[Any] = [result.sequence, f"{result.ns:.1f}", f"{result.rounds:,}", f"{result.violations:,}"]
        if result.promised:
            row.append("[red]UNSOUND HERE[/]" if result.violations else "[green]sound[/]")
        else:
            row.append("shown to be unsound" if result.violations else "unsound by design; not shown here")
        table.add_row(*row)
    return table
