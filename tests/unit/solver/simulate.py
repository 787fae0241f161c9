"""Made-up recordings whose true order is known.

Threads are generators that yield what they want to do and are sent what came of it. A seeded scheduler interleaves the
three phases of every event (stamp, effect, stamp) at random; the clocks of the cores are skewed within the intervals
that the recording states.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

import numpy as np

from recbulc.ordering.events import Recording
from recbulc.recorders.events import EVENT, POISON, Flag, Kind
from recbulc.schedule import Part

Want = tuple  # (Kind, object, ...)
Program = Generator[Want, int, None]
EBUSY, ETIMEDOUT = 16, 110
START = 1_000_000


@dataclass
class Thread:
    """One simulated thread."""

    program: Program
    core: int
    rows: list[list[int]] = field(default_factory=list)
    want: Want | None = None
    phase: int = 0
    row: int = -1
    result: int = 0
    nested: list[tuple[Program, int]] = field(default_factory=list)
    ended: bool = False


class Simulator:
    """Runs programs; `truth` is the order in which operations took effect: (thread, event index, part)."""

    def __init__(self, seed: int, cores: int = 2, slack: int = 40, pace: int = 12, burst: float = 0.5) -> None:
        self.random = random.Random(seed)
        self.skews = [0] + [self.random.randint(-100, 100) for _ in range(cores - 1)]
        self.slack = slack
        self.pace = pace
        self.burst = burst
        self.now = START
        self.threads: list[Thread] = []
        self.truth: list[tuple[int, int, int]] = []
        self.memory: dict[int, int] = {}
        self.owner: dict[int, tuple[int, int]] = {}
        self.readers: dict[int, list[int]] = defaultdict(list)
        self.semaphores: dict[int, int] = defaultdict(int)
        self.waiting: dict[int, list[int]] = defaultdict(list)
        self.woken: set[int] = set()
        self.arrived: dict[int, list[int]] = defaultdict(list)
        self.parties: dict[int, int] = {}
        self.once: dict[int, str] = {}
        self.blocks = 0x10000
        self.free_blocks: list[tuple[int, int]] = []
        self.crashed = False
        self.sites: dict[object, int] = {}

    def interval(self, x: int, y: int) -> tuple[int, int]:
        skew = self.skews[y] - self.skews[x]
        low = (x * 7 + y * 13) % (self.slack + 1) if x < y else self.slack - (y * 7 + x * 13) % (self.slack + 1)
        return skew - low, skew + self.slack - low

    def spawn(self, program: Program) -> int:
        self.threads.append(Thread(program, len(self.threads) % len(self.skews)))
        thread = self.threads[-1]
        thread.want = (Kind.THREAD_START, 0)
        return len(self.threads) - 1

    def run(self, main: Program, steps: int = 10**9) -> Recording:
        self.spawn(main)
        current = 0
        deadlocked = False
        for _ in range(steps):
            able = [t for t in range(len(self.threads)) if self.able(t)]
            if self.crashed or not able:
                deadlocked = not self.crashed and any(not thread.ended for thread in self.threads)
                break
            if current not in able or self.random.random() > self.burst:
                current = self.random.choice(able)
            self.now += self.random.randint(1, self.pace)
            self.step(current)
        logs = []
        for thread in self.threads:
            log = np.zeros(len(thread.rows), EVENT)
            for i, row in enumerate(thread.rows):
                log[i] = tuple(row)
            logs.append(log)
        return Recording(tuple(logs), self.interval, deadlocked)

    def stamp(self, thread: Thread) -> int:
        return self.now + self.skews[thread.core]

    def able(self, t: int) -> bool:
        thread = self.threads[t]
        if thread.ended:
            return False
        if thread.phase != 1 or thread.want is None:
            if thread.phase == 2 and thread.want is not None and thread.want[0] == Kind.COND_WAIT:
                woken = t in self.woken or (len(thread.want) > 3 and thread.want[3])
                return woken and thread.want[2] not in self.owner
            if thread.phase == 2 and thread.want is not None and thread.want[0] == Kind.BARRIER_WAIT:
                return t in self.woken
            return True
        kind, thing = thread.want[0], thread.want[1]
        if kind in (Kind.MUTEX_LOCK, Kind.SPIN_LOCK):
            recursive = len(thread.want) > 2 and thread.want[2]
            return thing not in self.owner or (recursive and self.owner[thing][0] == t)
        if kind == Kind.RW_WRLOCK:
            return thing not in self.owner and not self.readers[thing]
        if kind == Kind.RW_RDLOCK:
            return thing not in self.owner
        if kind == Kind.SEM_WAIT:
            return self.semaphores[thing] > 0
        if kind == Kind.JOIN:
            return self.threads[thread.want[2]].ended
        if kind == Kind.ONCE:
            return self.once.get(thing) != "running"
        return True

    def step(self, t: int) -> None:
        thread = self.threads[t]
        if thread.phase == 0:
            self.begin(t, thread)
        elif thread.phase == 1:
            self.effect(t, thread)
        elif thread.phase == 2:
            self.second(t, thread)
        else:
            self.end(t, thread)

    def begin(self, t: int, thread: Thread) -> None:
        want = thread.want
        kind, thing = want[0], want[1]
        size = want[2] if kind in (Kind.READ, Kind.WRITE, Kind.RMW) else 0
        site = self.sites.setdefault((want[0], want[1]), len(self.sites) + 1)
        thread.row = len(thread.rows)
        call = 0 if size else site
        thread.rows.append(
            [self.stamp(thread), 0, thing, 0, 0, site if size else 0, call, thread.core, thread.core, kind, size, 0]
        )
        thread.phase = 1

    def end(self, t: int, thread: Thread) -> None:
        thread.rows[thread.row][1] = self.stamp(thread)
        if thread.want[0] == Kind.SIGNAL:
            self.crashed = True
        if thread.want[0] in (Kind.THREAD_END, Kind.EXIT):
            thread.ended = True
            return
        self.advance(thread, None if thread.want[0] == Kind.THREAD_START else thread.result)

    def advance(self, thread: Thread, result: int | None) -> None:
        thread.phase = 0
        try:
            thread.want = thread.program.send(result) if result is not None else next(thread.program)
        except StopIteration:
            if thread.nested:
                thread.program, thread.row = thread.nested.pop()
                thread.want = (Kind.ONCE, thread.rows[thread.row][2], None)
                self.once[thread.want[1]] = "done"
                self.truth.append((self.threads.index(thread), thread.row, Part.END))
                thread.phase, thread.result = 3, 0
            else:
                thread.want = (Kind.THREAD_END, 0)

    def load(self, address: int, size: int) -> int:
        return sum(self.memory.get(address + i, 0) << (8 * i) for i in range(size))

    def store(self, address: int, size: int, value: int) -> None:
        for i in range(size):
            self.memory[address + i] = (value >> (8 * i)) & 0xFF

    def effect(self, t: int, thread: Thread) -> None:  # noqa: PLR0912
        want, row = thread.want, thread.rows[thread.row]
        kind, thing = want[0], want[1]
        part, value, old, flags = Part.WHOLE, 0, 0, 0
        thread.phase = 3
        if kind == Kind.READ:
            value = self.load(thing, want[2])
        elif kind == Kind.WRITE:
            value = want[3] & ((1 << 8 * want[2]) - 1)
            self.store(thing, want[2], value)
        elif kind == Kind.RMW:
            old = self.load(thing, want[2])
            value = want[3](old) & ((1 << 8 * want[2]) - 1)
            self.store(thing, want[2], value)
            flags = Flag.ATOMIC
        elif kind == Kind.MALLOC:
            if self.free_blocks and self.random.random() < 0.7:
                row[2], _ = self.free_blocks.pop()
            else:
                row[2], self.blocks = self.blocks, self.blocks + 64
            value = want[2]
            if len(want) > 3 and want[3]:
                flags = Flag.ZERO
                self.store(row[2], value, 0)
        elif kind == Kind.FREE:
            value = want[2]
            for i in range(value):
                self.memory[thing + i] = POISON
            self.free_blocks.append((thing, value))
        elif kind == Kind.CREATE:
            value = self.spawn(want[2])
        elif kind == Kind.JOIN:
            value = want[2]
        elif kind in (Kind.MUTEX_LOCK, Kind.SPIN_LOCK, Kind.RW_WRLOCK):
            self.owner[thing] = (t, self.owner.get(thing, (t, 0))[1] + 1)
        elif kind in (Kind.MUTEX_TRYLOCK, Kind.SPIN_TRYLOCK):
            value = EBUSY if thing in self.owner else 0
            if not value:
                self.owner[thing] = (t, 1)
        elif kind in (Kind.MUTEX_UNLOCK, Kind.SPIN_UNLOCK):
            self.release(thing)
        elif kind == Kind.RW_RDLOCK:
            self.readers[thing].append(t)
        elif kind == Kind.RW_UNLOCK:
            if t in self.readers[thing]:
                self.readers[thing].remove(t)
            else:
                self.release(thing)
        elif kind in (Kind.COND_SIGNAL, Kind.COND_BROADCAST):
            asleep = [u for u in self.waiting[thing] if u not in self.woken]
            if asleep and kind == Kind.COND_SIGNAL:
                self.woken.add(self.random.choice(asleep))
            elif asleep:
                self.woken.update(asleep)
        elif kind == Kind.COND_WAIT:
            part, thread.phase, old = Part.BEGIN, 2, want[2]
            self.release(want[2])
            self.waiting[thing].append(t)
        elif kind == Kind.BARRIER_WAIT:
            part, thread.phase = Part.BEGIN, 2
            self.arrived[thing].append(t)
            if len(self.arrived[thing]) == self.parties[thing]:
                self.woken.update(self.arrived.pop(thing))
        elif kind == Kind.SEM_WAIT:
            self.semaphores[thing] -= 1
        elif kind == Kind.SEM_TRYWAIT:
            value = 0 if self.semaphores[thing] > 0 else 11
            self.semaphores[thing] -= value == 0
        elif kind == Kind.SEM_POST:
            self.semaphores[thing] += 1
        elif kind == Kind.SEM_INIT:
            self.semaphores[thing] = value = want[2]
        elif kind == Kind.BARRIER_INIT:
            self.parties[thing] = value = want[2]
        elif kind == Kind.ONCE:
            if thing not in self.once:
                self.once[thing] = "running"
                part, flags = Part.BEGIN, Flag.RAN
                thread.nested.append((thread.program, thread.row))
                thread.program = want[2]()
        elif kind in (Kind.SIGNAL, Kind.EXIT, Kind.MUTEX_INIT):
            value = want[2]
        row[3], row[4], row[11] = value, old, flags
        thread.result = {Kind.RMW: old, Kind.MALLOC: row[2]}.get(kind, value)
        self.truth.append((t, thread.row, part))
        if part == Part.BEGIN and kind == Kind.ONCE:
            self.advance(thread, None)

    def second(self, t: int, thread: Thread) -> None:
        """The second half of a wait."""
        kind, thing = thread.want[0], thread.want[1]
        if kind == Kind.COND_WAIT:
            thread.result = 0 if t in self.woken else ETIMEDOUT
            self.waiting[thing].remove(t)
            self.owner[thread.want[2]] = (t, 1)
            thread.rows[thread.row][3] = thread.result
        self.woken.discard(t)
        self.truth.append((t, thread.row, Part.END))
        thread.phase = 3

    def release(self, thing: int) -> None:
        t, depth = self.owner.pop(thing)
        if depth > 1:
            self.owner[thing] = (t, depth - 1)


Body = Callable[[random.Random], Program]


def main_of(workers: list[Program], before: list[Want] = ()) -> Program:
    """Creates the workers, joins them, exits."""
    for want in before:  # noqa: UP028 (a list takes nothing that is sent to it)
        yield want
    numbers = []
    for worker in workers:
        numbers.append((yield (Kind.CREATE, 0, worker)))
    for number in numbers:
        yield (Kind.JOIN, 0, number)
    yield (Kind.EXIT, 0, 0)
