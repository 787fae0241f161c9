"""What went wrong, in sentences: the verdict, and the racing pair, the lock cycle or the lost signal."""

from __future__ import annotations

import re
import signal

from recbulc.schedule import Access, Schedule, ShownBy, Verdict

BLOCK = re.compile(r"⟨(?P<file>.+):(?P<line>\d+), [\d.]+, \d+⟩(\+(?P<offset>\d+))?")
WIDE = 1 << 16  # values from here on are more readable in hexadecimal

SHOWN = {
    ShownBy.TRACE: "nothing fixes their order, and the value that was read led to the failure",
    ShownBy.FLIP: "nothing fixes their order: in the other order, and all before as it was, every run passes",
    ShownBy.PASSING_RUN: "nothing fixes their order: in runs that pass, the write comes first",
    ShownBy.PATTERN: "nothing fixes their order; that the failure comes of it is likely, and was not tried",
}

DOES = {
    "read": "reads",
    "write": "writes",
    "atomic": "accesses atomically",
    "lock": "locks",
    "wait": "waits for",
    "signal": "signals",
}


def verdict_sentence(verdict: Verdict) -> str:
    """How the run ended, and who ended it."""
    who = f" in thread {verdict.thread}" if verdict.thread else ""
    if verdict.how == "exit":
        return f"exit code {verdict.code}"
    if verdict.how == "signal":
        known = verdict.code in signal.Signals.__members__.values()
        return (signal.Signals(verdict.code).name if known else f"signal {verdict.code}") + who
    if verdict.how == "deadlock":
        waiting = ", ".join(name for name, _, _ in verdict.blocked)
        return f"deadlock: the threads {waiting} wait for ever" if waiting else "deadlock"
    if verdict.how == "timeout":
        return f"time-out: {verdict.detail}"
    if verdict.how in {"regex", "cmd"}:
        return f"--fail-if {verdict.how} met: {verdict.detail}"
    return "no failure"


def racing_title(racing: tuple[Access, ...]) -> str:
    """What the accesses are, together."""
    kinds = {access.kind for access in racing}
    if kinds == {"lock"}:
        return "lock cycle"
    if kinds & {"wait", "signal"}:
        return "lost signal"
    return "racing pair"


def racing_sentences(schedule: Schedule) -> list[str]:
    """One line for each access of the racing pair, in their order, and what they are to each other."""
    racing = schedule.racing
    if not racing:
        return []
    title = racing_title(racing)
    lines = [f"{title}:", *(f"  {access_sentence(access, schedule.cwd)}" for access in racing)]
    if title == "lock cycle":
        lines.append("  each waits for a lock that the next one holds")
    elif title == "lost signal":
        lines.append("  nobody was waiting when the signal came, and none comes after")
    else:
        lines.append(f"  {SHOWN[schedule.shown_by]}")
    return lines


def access_sentence(access: Access, cwd: str = "") -> str:
    """`thread 0.1 reads totals.bytes (= 0) at main.c:35 in add_bytes`; files below `cwd` as seen from there."""
    what = f" {object_text(access.object, cwd)}" if access.object else ""
    value = f" (= {value_text(access.value)})" if access.value is not None else ""
    where = f" in {access.function}" if access.function else ""
    return (
        f"thread {access.thread} {DOES[access.kind]}{what}{value} at {seen_from(cwd, access.file)}:{access.line}{where}"
    )


def object_text(name: str, cwd: str = "") -> str:
    """A block by where it was allocated, everything else by its name."""
    block = BLOCK.fullmatch(name)
    if not block:
        return name
    offset = f"byte {block['offset']} of " if block["offset"] else ""
    return f"{offset}the block of {seen_from(cwd, block['file'])}:{block['line']}"


def seen_from(cwd: str, file: str) -> str:
    """A path below `cwd` without it."""
    return file.removeprefix(f"{cwd}/") if cwd else file


def value_text(value: int) -> str:
    """Small numbers as they are, the rest as addresses are written."""
    return str(value) if abs(value) < WIDE else f"{value:#x}"
