"""What ordering and solving need of a recording: the events of its threads and the bounds between its clocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recbulc.calibration.model import Kind as IntervalKind
from recbulc.recorders.events import Kind
from recbulc.recorders.trace import Trace

SOME_TIME = 1 << 61  # a stamp later than all others
IntervalOf = Callable[[int, int], tuple[int, int]]
Events = NDArray[Any]  # of recorders.events.EVENT
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Recording:
    """`interval(x, y)` bounds TS_y − TS_x, read at one instant (ReCBuLC §3.3); the index of a thread is its number."""

    threads: tuple[Events, ...]
    interval: IntervalOf
    deadlocked: bool = False  # the run ended because its blocked calls could never return
    names: tuple[str, ...] = ()  # of the threads, by creation: 0, 0.1, ...

    @property
    def events(self) -> int:
        """Of all threads."""
        return sum(len(events) for events in self.threads)

    def name(self, thread: int) -> str:
        """Of a thread; its number where nobody named it."""
        return self.names[thread] if self.names else str(thread)


def _with_known_child(trace: Trace, number: int) -> Events:
    """The events of a thread; a creation that had not returned, but whose thread had begun, did take effect."""
    events = trace.events[number]
    if not len(events) or events[-1]["kind"] != Kind.CREATE or events[-1]["after"]:
        return events
    known = set(events["value"][events["kind"] == Kind.CREATE].tolist())
    mine = [t.number for t in trace.threads if t.parent == number and t.number not in (number, *known)]
    begun = [child for child in mine if len(trace.events[child])]
    if not begun:
        return events
    events = events.copy()
    events[-1]["value"], events[-1]["after"], events[-1]["core_after"] = begun[0], SOME_TIME, events[-1]["core"]
    return events


def recording_of(trace: Trace, interval: IntervalKind = "sound") -> Recording:
    """What ordering and solving need of a trace, under the sound or the confident bounds of its clocks."""
    return Recording(
        tuple(_with_known_child(trace, number) for number in range(len(trace.threads))),
        lambda x, y: trace.interval(x, y, interval),
        trace.meta.verdict.how == "deadlock",
        tuple(thread.name for thread in trace.threads),
    )
