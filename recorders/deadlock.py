"""A deadlock is read off the threads' state words, and off nobody running meanwhile.

Every task of the process must be a thread that the runtime knows and that is BLOCKED (in a call that waits for another
thread, without a time limit) or PARKED (held by us), at least one BLOCKED, asleep, and no event and no context switch
of a blocked one between several looks. A thread that is RUNNING (also in a call we do not know, as read from a
terminal), TIMED or DELAYED means that things may still go on. A program that handles signals must stand still longer.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

from recbulc.recorders.control import ControlPage, ThreadState

LOOKS = 3
PATIENCE_S = 2.0  # of nothing moving, where a signal handler of the program may yet wake someone
INTERVAL_S = 0.010
MOST_INTERVAL_S = 0.100
OURS = sum(
    1 << (number - 1)
    for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP, 32, 33)
)  # rb_signals.c; 32 and 33 are libc's, for cancelling and setuid
STUCK = (ThreadState.BLOCKED, ThreadState.PARKED)
GONE = (ThreadState.NONE, ThreadState.ENDED)

Look = tuple[tuple[int, int, int], ...]  # (thread, its events, its context switches)


class DeadlockWatch:
    """Looks at one process every `interval_s` until it sees nothing move for LOOKS looks."""

    def __init__(self, pid: int, page: ControlPage) -> None:
        self._tasks = Path(f"/proc/{pid}/task")
        self._page = page
        self._last: Look = ()
        self._same = 0
        self._started = time.monotonic()
        self._since = self._started

    @property
    def interval_s(self) -> float:
        """Until the next look: short while there is a suspicion, a tenth of the time that passed otherwise."""
        if self._last:
            return INTERVAL_S
        return min(max(INTERVAL_S, (time.monotonic() - self._started) / 10), MOST_INTERVAL_S)

    def look(self) -> list[int]:
        """The numbers of the blocked threads if this is a deadlock; else none."""
        threads = self._page.threads()
        look = self._stuck(threads) if may_be_stuck(threads["state"]) else ()
        self._same = self._same + 1 if look and look == self._last else int(bool(look))
        self._last = look
        if self._same < 2:
            self._since = time.monotonic()
        if self._same < LOOKS or (time.monotonic() - self._since < PATIENCE_S and self._has_handlers()):
            return []
        return np.flatnonzero(threads["state"] == ThreadState.BLOCKED).tolist()

    def _has_handlers(self) -> bool:
        """Does the program catch signals other than those that the runtime itself catches?"""
        try:
            status = (self._tasks.parent / "status").read_text()
        except OSError:
            return False
        caught = next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigCgt:")), 0)
        return bool(caught & ~OURS)

    def _stuck(self, threads: npt.NDArray[np.void]) -> Look:
        """What must not move, or nothing if a task is awake, unknown, or has a child that may wake it."""
        known = {int(threads["tid"][n]): n for n in np.flatnonzero(np.isin(threads["state"], STUCK))}
        seen: list[tuple[int, int, int]] = []
        try:
            for task in self._tasks.iterdir():
                state, switches = _state_and_switches(task)
                if state in "ZX":
                    continue
                number = known.get(int(task.name))
                if number is None or state != "S" or _children(task):
                    return ()
                # a thread that we park wakes up to look around; a blocked one does not wake at all
                counted = switches if threads["state"][number] == ThreadState.BLOCKED else 0
                seen.append((int(number), int(threads["events"][number]), counted))
        except (OSError, ValueError, IndexError):  # a task ended meanwhile
            return ()
        return tuple(sorted(seen))


def may_be_stuck(states: npt.NDArray[np.uint32]) -> bool:
    """Do the state words alone allow a deadlock?"""
    return bool(np.isin(states, STUCK + GONE).all() and (states == ThreadState.BLOCKED).any())


def _state_and_switches(task: Path) -> tuple[str, int]:
    state, switches = "", 0
    for line in (task / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "State":
            state = value.split()[0]
        elif name.endswith("ctxt_switches"):
            switches += int(value)
    return state, switches


def _children(task: Path) -> bool:
    try:
        return bool((task / "children").read_text().split())
    except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN
        return False
