"""Events as operations: each takes effect at one instant between its two stamps.

A wait on a condition or a barrier, and a `pthread_once` that runs its routine, take effect twice: they are two
operations, with what happened in between standing between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from recbulc.ordering.events import Events, Ints, Recording
from recbulc.recorders.events import Flag, Kind
from recbulc.schedule import Part

ETIMEDOUT, ECANCELED = 110, 125
NEVER = 1 << 62  # the end of what did not end: later than every stamp

ACCESSES = (Kind.READ, Kind.WRITE, Kind.RMW)
BLOCKING = (
    Kind.JOIN,
    Kind.MUTEX_LOCK,
    Kind.RW_RDLOCK,
    Kind.RW_WRLOCK,
    Kind.SPIN_LOCK,
    Kind.SEM_WAIT,
    Kind.ONCE,
    Kind.COND_WAIT,
    Kind.BARRIER_WAIT,
)
INSTANTS = (Kind.THREAD_START, Kind.THREAD_END, Kind.EXIT, Kind.SIGNAL, Kind.LOST)
MARKS = (Kind.FUNC_ENTRY, Kind.FUNC_EXIT, Kind.LOOP_ENTRY, Kind.LOOP_BACK, Kind.LOOP_EXIT)


@dataclass(frozen=True)
class ThreadOps:
    """The operations of one thread, in program order; all arrays have one entry for each."""

    events: Events  # the event it is (half of)
    index: Ints  # of that event in the thread's log
    part: NDArray[np.uint8]  # schedule.Part
    before: Ints  # took effect not earlier than this, by the clock of `core`
    after: Ints  # and not later than this, by the clock of `core_after`; NEVER where it did not end

    def __len__(self) -> int:
        return len(self.index)

    @cached_property
    def kind(self) -> NDArray[np.uint8]:
        """Event kinds."""
        return np.ascontiguousarray(self.events["kind"])

    @cached_property
    def object(self) -> NDArray[np.uint64]:
        """Addresses."""
        return np.ascontiguousarray(self.events["object"])

    @cached_property
    def ended(self) -> NDArray[np.bool_]:
        """Did the whole event end? What did not may or may not have taken effect, and has no value."""
        return np.not_equal(self.after, NEVER)

    def of_kind(self, *kinds: Kind) -> Ints:
        """Where operations of these kinds are."""
        return np.flatnonzero(np.isin(self.kind, kinds))

    def select(self, where: Ints) -> ThreadOps:
        """Only these operations."""
        return ThreadOps(self.events[where], self.index[where], self.part[where], self.before[where], self.after[where])


def split(recording: Recording) -> list[ThreadOps]:
    """The operations of all threads."""
    return [_split_thread(events) for events in recording.threads]


def _split_thread(events: Events) -> ThreadOps:
    before = events["before"].astype(np.int64)
    after = events["after"].astype(np.int64)
    kind = events["kind"]
    after = np.where((after == 0) & np.isin(kind, INSTANTS), before, after)
    after = np.where(after == 0, NEVER, after)
    ended = after != NEVER
    number = np.arange(len(events))
    part = np.where(~ended & np.isin(kind, BLOCKING), Part.BLOCKED, Part.WHOLE)
    result = events["value"]
    slept = (kind == Kind.COND_WAIT) & (~ended | np.isin(result, (0, ETIMEDOUT, ECANCELED)))
    halves = slept | (kind == Kind.BARRIER_WAIT)
    # a routine under way shows by what its thread did after entering it
    ran = (kind == Kind.ONCE) & (((events["flags"] & Flag.RAN) != 0) | (~ended & (number < len(events) - 1)))
    first = np.flatnonzero(halves | ran)
    part[first] = Part.BEGIN
    second = np.flatnonzero(halves | (ran & ended))
    # the second half stands before the first event that began after it
    place = np.where(halves[second], second + 1, np.searchsorted(before, after[second], side="right"))
    index = np.concatenate([number, second])
    order = np.lexsort((np.concatenate([number * 0 + 1, second * 0]), np.concatenate([number, place])))
    parts = np.concatenate([part, np.where(ended[second], Part.END, Part.BLOCKED)]).astype(np.uint8)
    index = index[order]
    return ThreadOps(events[index], index, parts[order], before[index], after[index])
