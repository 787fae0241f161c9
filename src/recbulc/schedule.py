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

import hashlib
import os
import tempfile
from collections.abc import Iterator
from enum import Enum, IntEnum
from pathlib import Path

import msgspec

from recbulc.errors import InputError

FORMAT = "recbulc-schedule"
VERSION = 1
AGAIN = "make a new one with `recbulc solve`"
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Part(IntEnum):
    """Which half of a call that releases and acquires (COND_WAIT, BARRIER_WAIT, ONCE that ran its routine)."""

    WHOLE = 0
    BEGIN = 1  # released the mutex, arrived at the barrier, entered the routine
    END = 2  # woken and has the mutex again, left the barrier, left the routine
    BLOCKED = 3  # begun and never completed, or an access that faulted: the thread's last op


class ShownBy(str, Enum):
    """How the racing pair is known. TRACE: a lock cycle, a lost signal, or the value that led to a crash; FLIP: with
    these two in the other order every run passed; PASSING_RUN: one half is missing in the failing run, and was found in
    one that passes; PATTERN: it looks like it, and nothing confirms it.
    """

    TRACE = "trace"
    FLIP = "flip"
    PASSING_RUN = "passing-run"
    PATTERN = "pattern"


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
    shown_by: ShownBy = ShownBy.PATTERN
    memory_model: str = "sc"
    format: str = FORMAT
    version: int = VERSION

    def save(self, path: Path) -> None:
        """Write the file whole or not at all: JSON, with one operation, one site and one variable to a line."""
        text = b"{\n" + b",\n".join(self._members()) + b"\n}\n"
        try:
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(text)
                Path(temporary).chmod(0o644)
                Path(temporary).replace(path)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror}", "choose another place") from error

    def checksum(self) -> str:
        """Of everything in it."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()

    def first_flaw(self) -> str:
        """What cannot be in a schedule that one of ours wrote; empty where all is well."""
        if not self.threads or self.threads[0].name != "0":
            return "its first thread is not the main thread"
        names = {thread.name for thread in self.threads}
        lengths = [len(thread.ops) for thread in self.threads]
        for thread in self.threads:
            if thread.name != "0" and thread.name.rpartition(".")[0] not in names:
                return f"thread {thread.name} has no parent"
            for place, op in enumerate(thread.ops):
                if not -1 <= op.site < len(self.sites) or op.count < 0:
                    return f"operation {place} of thread {thread.name} is at no site"
                if any(not (0 <= u < len(lengths) and 0 <= n <= lengths[u]) for u, n in op.waits):
                    return f"operation {place} of thread {thread.name} waits for none that there is"
        return ""

    def _members(self) -> Iterator[bytes]:
        encode = msgspec.json.encode
        yield b'"format": ' + encode(self.format)
        yield b'"version": ' + encode(self.version)
        yield b'"checksum": ' + encode(self.checksum())
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if name in {"format", "version", "threads", "sites"}:
                continue
            if name == "env":
                lines = b",\n".join(b"  " + encode(k) + b": " + encode(v) for k, v in sorted(value.items()))
                yield b'"env": {\n' + lines + b"\n}"
            else:
                yield encode(name) + b": " + encode(value)
        yield b'"sites": [\n' + b",\n".join(b"  " + encode(site) for site in self.sites) + b"\n]"
        yield b'"threads": [\n' + b",\n".join(_thread_text(thread) for thread in self.threads) + b"\n]"


def _thread_text(thread: ThreadSchedule) -> bytes:
    encode = msgspec.json.encode
    head = b' {"name": ' + encode(thread.name) + b', "core": ' + encode(thread.core) + b', "ops": [\n'
    return head + b",\n".join(b"  " + encode(op) for op in thread.ops) + b"\n ]}"


def load_schedule(path: Path) -> Schedule:
    """Read a schedule; a file that is none, or is damaged, is refused with the reason."""
    content, header = _begun(path)
    if header.version != VERSION:
        raise InputError(f"{path} has version {header.version}, this recbulc reads version {VERSION}", AGAIN)
    try:
        schedule = msgspec.json.decode(content, type=Schedule)
    except UNREADABLE as error:
        raise InputError(f"{path} is damaged: {error}", AGAIN) from error
    if schedule.checksum() != header.checksum:
        raise InputError(f"{path} is damaged: its checksum does not fit its content", AGAIN)
    if flaw := schedule.first_flaw():
        raise InputError(f"{path} is damaged: {flaw}", AGAIN)
    return schedule


def is_schedule(path: Path) -> bool:
    """Is this a file that we made, and may make anew?"""
    try:
        return bool(_begun(path))
    except InputError:
        return False


def _begun(path: Path) -> tuple[bytes, _Header]:
    """A file's content and what it says about itself."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the schedule {path}: {error.strerror}", AGAIN) from error
    try:
        header = msgspec.json.decode(content, type=_Header)
    except UNREADABLE as error:
        raise InputError(f"{path} is no schedule, or is damaged: {error}", AGAIN) from error
    if header.format != FORMAT:
        raise InputError(f"{path} is not a schedule (its format is {header.format!r})", AGAIN)
    return content, header


def build_id_of(program: Path) -> str:
    """What binds a recording and its schedules to one executable."""
    try:
        return hashlib.sha256(program.read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(f"cannot read {program}: {error.strerror}", "check its name") from error


class _Header(msgspec.Struct, frozen=True):
    format: str = ""
    version: int = 0
    checksum: str = ""
