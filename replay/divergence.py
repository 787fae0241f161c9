"""Where a replay left its schedule: which thread, what it was to do and what it did instead (STYLE 17)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from recbulc.recorders.control import thread_names
from recbulc.recorders.events import Kind
from recbulc.replay.compile import ACCESSES, NONE
from recbulc.schedule import Op, Part, Schedule, Site

Locate = Callable[[int], Site | None]  # a site of the program that ran, by its global number


class Reason(IntEnum):
    """rb_divergence_reason of rb_replay.h; LACKING is found without a run."""

    LACKING = 0
    ACCESS = 1
    CALL = 2
    PLACE = 3
    RESULT = 4
    STILL = 5
    ENDED = 6
    SIGNAL = 7
    UNBLOCKED = 8
    MISSED = 9


FOLLOWED = (Reason.UNBLOCKED, Reason.MISSED)  # the schedule was kept to its end, which was another than the recorded


@dataclass(frozen=True)
class Divergence:
    """The first one of a run; `position` counts the thread's operations from 0."""

    reason: Reason
    thread: str
    position: int
    expected: str
    found: str

    @property
    def followed(self) -> bool:
        """Was the schedule kept up to where the recorded run failed?"""
        return self.reason in FOLLOWED

    @property
    def message(self) -> str:
        """One sentence."""
        return f"thread {self.thread}, operation {self.position}: expected {self.expected}, found {self.found}"


class Namer:
    """Says in words what an operation is, and what a thread did."""

    def __init__(self, schedule: Schedule, lists: Sequence[Sequence[Op]], locate: Locate) -> None:
        self.schedule = schedule
        self.lists = lists
        self._locate = locate

    def divergence(self, row: npt.NDArray[np.void]) -> Divergence:
        """From the control page."""
        reason, thread, position = Reason(int(row["reason"])), int(row["thread"]), int(row["position"])
        name = self.schedule.threads[thread].name
        found = self._found(reason, row)
        return Divergence(reason, name, position, self._expected(thread, position), found)

    def still(self, positions: Mapping[str, int], why: str, *, but_signal: bool = False) -> Divergence | None:
        """From a run that ended with lists undone, as if the engine itself had given up; None: all are done.

        `but_signal`: the fatal signal itself need not have been seen.
        """
        undone: dict[int, int] = {}
        lacking: dict[int, tuple[int, int]] = {}  # thread → what it waits for
        for number, (thread, ops) in enumerate(zip(self.schedule.threads, self.lists, strict=True)):
            position = positions.get(thread.name, 0)
            if position >= len(ops) or ops[position].part == Part.BLOCKED:
                continue
            if but_signal and ops[position].kind == Kind.SIGNAL:
                continue
            undone[number] = position
            for u, n in ops[position].waits:
                if positions.get(self.schedule.threads[u].name, 0) < n:
                    lacking.setdefault(number, (u, n))
        if not undone:
            return None
        culprit = _root(lacking) if lacking else min(undone)
        found = self._awaiting(*lacking[culprit]) if culprit in lacking else f"that it had not come ({why})"
        expected = self._expected(culprit, undone.get(culprit, len(self.lists[culprit])))
        name = self.schedule.threads[culprit].name
        return Divergence(Reason.STILL, name, undone.get(culprit, len(self.lists[culprit])), expected, found)

    def lacking(self, thread: str, position: int, op: Op) -> Divergence:
        """An operation that another build cannot make."""
        return Divergence(Reason.LACKING, thread, position, self.op(op), "no such place in this build")

    def op(self, op: Op) -> str:
        """`READ at f (a.c:12), execution 3`."""
        what = Kind(op.kind).name
        if op.part != Part.WHOLE:
            what += f" ({Part(op.part).name.lower()})"
        place = describe_site(self.schedule.sites[op.site]) if op.site >= 0 else ""
        nth = "execution" if op.kind in ACCESSES else "call"
        return what + (f" at {place}" if place else "") + f", {nth} {op.count + 1}"

    def _expected(self, thread: int, position: int) -> str:
        ops = self.lists[thread]
        return self.op(ops[position]) if position < len(ops) else "nothing more"

    def _found(self, reason: Reason, row: npt.NDArray[np.void]) -> str:
        if reason == Reason.STILL:
            if row["awaited_thread"] == NONE:
                return "that it never came"
            return self._awaiting(int(row["awaited_thread"]), int(row["awaited_position"]))
        kind = int(row["found_kind"])
        what = Kind(kind).name if kind in Kind.__members__.values() else str(kind)
        where = int(row["found_site"]) or int(row["found_call"])
        site = self._locate(where) if where else None
        what += f" at {describe_site(site)}" if site else f" at site {where}" if where else ""
        if reason in {Reason.ACCESS, Reason.CALL, Reason.PLACE}:
            what += f", {'execution' if kind in ACCESSES else 'call'} {int(row['found_count']) + 1}"
        ends = {
            Reason.RESULT: " with another result",
            Reason.UNBLOCKED: ", which completed",
            Reason.MISSED: ": it went on instead",
        }
        return what + ends.get(reason, "")

    def _awaiting(self, thread: int, count: int) -> str:
        awaited = self._expected(thread, count - 1)
        name = self.schedule.threads[thread].name
        return f"that it waits in vain for operation {count - 1} of thread {name} ({awaited})"


def _root(lacking: Mapping[int, tuple[int, int]]) -> int:
    """Where a chain of waits begins: a thread that waits for nobody, or the first of a circle."""
    thread = min(lacking)
    seen: set[int] = set()
    while thread in lacking and thread not in seen:
        seen.add(thread)
        thread = lacking[thread][0]
    return thread


def describe_site(site: Site) -> str:
    """`f (a.c:12)`."""
    return f"{site.function} ({site.file}:{site.line})"


def positions_of(threads: npt.NDArray[np.void]) -> dict[str, int]:
    """How many operations each thread has completed, by its name."""
    names = thread_names(threads["parent"], threads["nth"])
    return dict(zip(names, threads["position"].tolist(), strict=True))
