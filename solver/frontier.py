"""The frontier search: one position per thread, memory and synchronisation; forward in stamp order, locally back.

What matches and has no open conflict is done at once: a read that finds its value can only lose it later. Only
operations with open conflicts are chosen among, in the order that the stamps suggest. A dead end goes back to the last
choice that could have caused it: one made before the last write to the cells that nobody's read fits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from recbulc.recorders.events import Kind
from recbulc.solver.guards import Needs, guards_of, needs_of
from recbulc.solver.machine import Machine, Undo
from recbulc.solver.problem import ANY, Problem

Where = tuple[int, int]
MOST_DEAD_ENDS = 2_000  # without getting further: the window is handed on
LASTS = (Kind.EXIT, Kind.SIGNAL)


@dataclass(frozen=True)
class Stuck(Exception):  # noqa: N818 (an outcome, not an error)
    """No way on from here within the budget: the deepest position, what each thread would do next, and why not."""

    position: tuple[int, ...]
    blocked: tuple[Where, ...]
    out_of_time: bool


@dataclass
class Choice:
    """Where the search may come back to: the length of the trail, whom it has not tried, and the state's name."""

    depth: int
    left: list[int]
    name: object


@dataclass
class Statistics:
    """What the search did."""

    choices: int = 0
    dead_ends: int = 0
    windows: int = 0
    trail: list[int] = field(default_factory=list)


class Frontier:
    """A search over one problem. `trail` is the order so far, as thread numbers."""

    def __init__(self, problem: Problem, expired: Callable[[], bool]) -> None:
        self.problem = problem
        self.machine = Machine(problem)
        self.needs = needs_of(problem)
        self.guards = guards_of(problem)
        self.threads = range(len(problem.lanes))
        self.position = [0] * len(problem.lanes)
        self.memory: list[int] = [ANY] * len(problem.cells)
        self.name = 0  # of what is in memory, as a hash
        self.trail: list[int] = []
        self.undone: list[tuple[list[tuple[int, int]] | None, Undo | None]] = []
        self.choices: list[Choice] = []
        self.failed: set[object] = set()
        self.statistics = Statistics()
        self._expired = expired
        self._lanes = problem.lanes
        self._kinds = [lane.ops.kind.tolist() for lane in problem.lanes]
        self.unknowns = sum(bool(guards) for lane in self.guards for guards in lane)  # operations with open conflicts

    def run(
        self, hand_on: Callable[[Stuck], list[int] | None] = lambda _: None, dead_ends: int = MOST_DEAD_ENDS
    ) -> list[int]:
        """The whole order, as thread numbers.

        `hand_on` may say how a window goes on in which the search is stuck, having gone back to its start; that is
        after so many `dead_ends` without getting further.
        """
        deepest, since = 0, 0
        best: tuple[int, ...] = ()
        while True:
            self._do_what_is_safe()
            if self._finished():
                self.statistics.trail = self.trail
                return self.trail
            able = self._able()
            if len(self.trail) > deepest:
                deepest, since, best = len(self.trail), 0, tuple(self.position)
            if able:
                if len(able) > 1:
                    name = self._state_name()
                    if name in self.failed:
                        able = []
                    else:
                        self.choices.append(Choice(len(self.trail), able[1:], name))
                        self.statistics.choices += 1
                if able:
                    self._do(able[0])
                    continue
            since += 1
            self.statistics.dead_ends += 1
            late = self.statistics.dead_ends % 256 == 0 and self._expired()
            if since > dead_ends or late or not self._go_back():
                stuck = Stuck(best or tuple(self.position), self._blocked_at(best), late)
                way = None if late else hand_on(stuck)
                if way is None or not self.follow(way):
                    raise stuck
                self.statistics.windows += 1
                self.choices.clear()
                since = 0

    def follow(self, way: list[int]) -> bool:
        """Do these next, or nothing of it where one may not come."""
        depth = len(self.trail)
        for t in way:
            i = self.position[t]
            step = self.machine.steps[t][i] if i < len(self._lanes[t]) else None
            if i >= len(self._lanes[t]) or not self._ready(t, i) or not self._matches(t, i):
                self.restart_at(depth)
                return False
            if step is not None and not step[0](t, *step[2]):
                self.restart_at(depth)
                return False
            self._do(t)
        return True

    def restart_at(self, depth: int) -> None:
        """Undo all but the first `depth` operations."""
        while len(self.trail) > depth:
            self._undo()

    def _finished(self) -> bool:
        return all(self.position[t] >= self._lanes[t].required for t in self.threads)

    def _ready(self, t: int, i: int) -> bool:
        position = self.position
        return all(position[u] >= count for u, count in self.needs[t][i])

    def _matches(self, t: int, i: int) -> bool:
        if (t, i) in self.problem.external:
            return True
        memory = self.memory
        return all(memory[cell] == value or memory[cell] == ANY for cell, value in self._lanes[t].reads[i])

    def _safe(self, guards: Needs) -> bool:
        position = self.position
        return all(position[u] >= count for u, count in guards)

    def _do_what_is_safe(self) -> None:  # noqa: PLR0912
        lanes, position, memory = self._lanes, self.position, self.memory
        moved = True
        while moved:
            moved = False
            for t in self.threads:
                lane, needs, guards, kinds, steps = (
                    lanes[t], self.needs[t], self.guards[t], self._kinds[t], self.machine.steps[t],
                )  # fmt: skip
                reads, writes = lane.reads, lane.writes
                i = position[t]
                while i < lane.required:
                    for u, count in needs[i]:
                        if position[u] < count:
                            break
                    else:
                        step = steps[i]
                        if step is not None:
                            unsafe = guards[i] and step[1] != self.machine._nothing and not self._safe(guards[i])
                            if unsafe or not step[0](t, *step[2]):
                                break
                        elif kinds[i] in LASTS:
                            break
                        else:
                            sure = True
                            if (t, i) not in self.problem.external:
                                for cell, value in reads[i]:
                                    now = memory[cell]
                                    if now != value:
                                        sure = False
                                        if now != ANY:
                                            break
                                else:
                                    sure = sure and not writes[i]
                                    now = value = 0
                                if now not in (value, ANY):
                                    break
                            else:
                                sure = False
                            if not sure and guards[i] and not self._safe(guards[i]):
                                break
                        self._do(t)
                        i += 1
                        moved = True
                        continue
                    break

    def _able(self) -> list[int]:
        """Whose next operation may come now, most likely first; what ends the run and what never ended last."""
        found = []
        for t in self.threads:
            lane, i = self._lanes[t], self.position[t]
            if i >= len(lane) or not self._ready(t, i) or not self._matches(t, i):
                continue
            if i >= lane.required and not lane.writes[i]:
                continue
            step = self.machine.steps[t][i]
            if step is not None and not step[0](t, *step[2]):
                continue
            late = 2 if i >= lane.required else 1 if self._kinds[t][i] in LASTS else 0
            found.append((late, lane.key[i], t))
        found.sort()
        return [t for _, _, t in found]

    def _do(self, t: int) -> None:
        i = self.position[t]
        lane = self._lanes[t]
        old: list[tuple[int, int]] | None = None
        if lane.reads[i] or lane.writes[i]:
            old = []
            memory = self.memory
            for cell, value in (*lane.reads[i], *lane.writes[i]):
                now = memory[cell]
                if now != value:
                    old.append((cell, now))
                    memory[cell] = value
                    self.name ^= hash((cell, now)) ^ hash((cell, value))
        step = self.machine.steps[t][i]
        undo = step[1](t, *step[2]) if step is not None else None
        self.undone.append((old, undo))
        self.trail.append(t)
        self.position[t] = i + 1

    def _undo(self) -> None:
        t = self.trail.pop()
        self.position[t] -= 1
        old, undo = self.undone.pop()
        if old:
            for cell, before in reversed(old):
                self.name ^= hash((cell, self.memory[cell])) ^ hash((cell, before))
                self.memory[cell] = before
        if undo:
            self.machine.undo(undo)

    def _state_name(self) -> object:
        waits: list[Any] = [item for item in self.machine.state.items() if item[0][0] == "condition"]
        return (*self.position, self.name, *waits)

    def _go_back(self) -> bool:
        """Undo to the last choice that may matter and try its next way; False when there is none."""
        blame = self._blame()
        depth = len(self.trail)
        if blame:
            position = list(self.position)
            while depth:
                depth -= 1
                t = self.trail[depth]
                position[t] -= 1
                if any(cell in blame for cell, _ in self._lanes[t].writes[position[t]]):
                    break
                if any(cell in blame for cell, _ in self.undone[depth][0] or ()):
                    break
        exact = not blame
        while self.choices:
            choice = self.choices[-1]
            if choice.depth > depth and not exact:
                self.choices.pop()  # made after the last write that matters
                continue
            if choice.left:
                self.restart_at(choice.depth)
                self._do(choice.left.pop(0))
                return True
            self.failed.add(choice.name)
            self.choices.pop()
        return False

    def _blame(self) -> set[int]:
        """The cells whose contents stop someone; empty where something else does too."""
        blame: set[int] = set()
        for t in self.threads:
            i = self.position[t]
            if i >= self._lanes[t].required or not self._ready(t, i):
                continue
            if self._matches(t, i):
                return set()
            blame.update(cell for cell, value in self._lanes[t].reads[i] if self.memory[cell] not in (value, ANY))
        return blame

    def _blocked_at(self, position: tuple[int, ...]) -> tuple[Where, ...]:
        return tuple((t, i) for t, i in enumerate(position) if i < self._lanes[t].required)
