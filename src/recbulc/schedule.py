"""A schedule: everything that makes a program fail again, in one readable file.

Solver, search and replay share this value type. It names threads, sites and instances, never an address, and needs no
trace beside it.

What it enforces: every thread has a list of operations in program order. Operation i of a thread begins only when each
thread u of its waits has *completed* n operations of its own list. An access completes at its AFTER site, a call when
it returns. The closure of these waits with program order orders every conflicting pair up to the failure; accesses of
gated sites that are in no list run free.

File format history (docs/schedule.md describes it):
1: first version.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

FORMAT = "recbulc-schedule"
VERSION = 1


class Part(IntEnum):
    """Which half of a call that releases and acquires (COND_WAIT, BARRIER_WAIT, ONCE that ran its routine)."""

    WHOLE = 0
    BEGIN = 1  # released the mutex, arrived at the barrier, entered the routine
    END = 2  # woken and has the mutex again, left the barrier, left the routine
    BLOCKED = 3  # begun and never completed, or an access that faulted: the thread's last op


class Site(msgspec.Struct, frozen=True):
    """A place in the program. `ordinal` counts the sites of this kind, function and line: it finds it in a rebuild."""

    number: int  # in the linked file, as the runtime counts
    kind: str  # of rb_site.h: BEFORE_READ, CALL, ...
    function: str
    file: str
    line: int
    column: int
    ordinal: int


class Op(msgspec.Struct, frozen=True, array_like=True):
    """One operation. `kind` is an event kind; `count` how often its thread had executed its site before (accesses)."""

    kind: int
    site: int  # index in Schedule.sites of the access, or of the CALL site that led to a call; -1 for none
    count: int  # instance of an access; for calls, which of the calls of this kind by this thread, from 0
    waits: tuple[tuple[int, int], ...] = ()  # (thread, number of its operations that must be complete)
    value: int = 0  # calls: the result to return where it is not made; INPUT: the value; CREATE: the thread created
    part: int = Part.WHOLE
    order: int = 0  # place in the total order that was found, for people; waits are what is enforced
    flags: int = 0  # of the event


class ThreadSchedule(msgspec.Struct, frozen=True):
    """One thread: its name by creation (`0.1.2`), its operations, and the core it was pinned to (-1: none)."""

    name: str
    ops: tuple[Op, ...]
    core: int = -1


class Verdict(msgspec.Struct, frozen=True):
    """How the recorded run ended: `how` is passed, exit, signal, timeout, deadlock, regex or cmd."""

    how: str
    code: int = 0  # exit code, or number of the signal
    fail_if: tuple[str, ...] = ()  # the predicates asked for, as written
    detail: str = ""  # the matched text, or what was said about it
    thread: str = ""  # the thread that got the signal or ended the process; "" where nobody knows
    site: int = -1  # index in Schedule.sites where it did: the faulting access, or the last place before
    blocked: tuple[tuple[str, str, int], ...] = ()  # deadlock: (thread, event kind, index in Schedule.sites)

    @property
    def failed(self) -> bool:
        """Was it a failure?"""
        return self.how != "passed"


class Access(msgspec.Struct, frozen=True):
    """One end of the racing pair (or a link of the lock cycle, or of the lost signal)."""

    file: str
    line: int
    thread: str
    kind: str  # read, write, atomic, lock, wait or signal
    value: int | None = None
    object: str = ""  # by name: symbol+offset, or where it was allocated
    function: str = ""


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """See the module."""

    program: str  # path of the executable
    build_id: str  # sha256 of the executable's file
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    stdin: bytes = b""
    threads: tuple[ThreadSchedule, ...]  # index = number of the thread
    sites: tuple[Site, ...]
    verdict: Verdict
    timeout_s: float
    racing: tuple[Access, ...] = ()
    memory_model: str = "sc"
    format: str = FORMAT
    version: int = VERSION
