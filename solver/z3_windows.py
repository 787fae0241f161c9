"""Which part of a problem goes to z3, and what comes back: a window around where the search is stuck, or all of it.

A window begins some operations before the place where the search is stuck and ends some behind it. One that has no
order says nothing about the whole: what the rest of it needs may lie outside. So windows grow, at both ends, until one
has an order that the search can follow, or it is the whole problem.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from recbulc.solver.encode import encode
from recbulc.solver.encode_places import OutOfTime, Window, furthest, whole
from recbulc.solver.encode_terms import Fact, Where
from recbulc.solver.frontier import LASTS, Frontier, Stuck
from recbulc.solver.problem import Problem
from recbulc.solver.z3_backend import Answer, ask

BACK, AHEAD = 24, 12  # operations before and behind where the search is stuck, in the first window
MOST = 4_000  # operations of a window: beyond that z3 has never answered
MOST_EXPLAINED, EXPLAINED_WITHIN_S = 2_000, 10.0  # of a problem already known to have no order
WINDOW_SHARE = 0.25  # of the time left, for one window


@dataclass(frozen=True)
class Clash(Exception):  # noqa: N818 (a finding, which its caller turns into a sentence)
    """No order explains the whole problem: these facts have none together, or nobody knows which (empty)."""

    facts: tuple[Fact, ...]


def find_clash(problem: Problem, deadline: float) -> Clash | None:
    """Which facts of a problem that has no order clash; None where it is too large to find out."""
    if sum(len(lane) for lane in problem.lanes) > MOST_EXPLAINED:
        return None
    windows = Windows(Frontier(problem, lambda: False), min(deadline, time.monotonic() + EXPLAINED_WITHIN_S))
    try:
        windows.settle_all()
    except Clash as found:
        return found
    return None


class Windows:
    """Hands windows of one search to z3. `count` and `seconds`: how many had an order, and how long all took."""

    def __init__(self, frontier: Frontier, deadline: float) -> None:
        self.count = 0
        self.seconds = 0.0
        self._frontier = frontier
        self._deadline = deadline
        self._deepest = -1
        self._level = 0

    def settle(self, stuck: Stuck) -> list[int] | None:
        """An order for a window around where the search is stuck, which is left at its start; None if none is found.

        Raises a Clash where the window had grown to the whole problem, and has none.
        """
        depth = sum(stuck.position)
        self._level = self._level + 1 if depth <= self._deepest else 0
        self._deepest = max(self._deepest, depth)
        while time.monotonic() < self._deadline:
            self._frontier.restart_at(max(0, min(len(self._frontier.trail), depth) - (BACK << self._level)))
            window = self._around(stuck.position, AHEAD << self._level)
            everything = not any(window.start) and window.goal == whole(self._frontier.problem).goal
            if len(window) > MOST and not everything:
                return None
            way = self._ask(window, 1.0 if everything else WINDOW_SHARE, whole_problem=everything)
            if way is not None or everything:
                return way
            self._level += 1
        return None

    def settle_all(self) -> list[int] | None:
        """An order for the whole problem at once; None if there was no time for that."""
        self._frontier.restart_at(0)
        return self._ask(whole(self._frontier.problem), 1.0, whole_problem=True)

    def _around(self, position: tuple[int, ...], ahead: int) -> Window:
        """From where the search is now to `ahead` operations behind `position`; as many again may follow."""
        frontier = self._frontier
        lanes, stop = frontier.problem.lanes, furthest(frontier.problem)
        start = tuple(frontier.position)
        limit = [lane.required for lane in lanes]
        goal = [max(pair) for pair in zip(position, start, strict=True)]
        goal = self._closed(self._advance(goal, limit, ahead))
        beyond = self._advance(list(goal), limit, ahead)
        rest = [end if far >= most else far for far, most, end in zip(beyond, limit, stop, strict=True)]
        most = tuple(max(pair) for pair in zip(goal, rest, strict=True))
        return Window(start, tuple(goal), most, list(frontier.memory), dict(frontier.machine.state))

    def _advance(self, goal: list[int], limit: list[int], steps: int) -> list[int]:
        """So many operations further in the order that the stamps suggest, where nothing needs more than that."""
        lanes, needs = self._frontier.problem.lanes, self._frontier.needs
        for _ in range(steps):
            left = [t for t, count in enumerate(goal) if count < limit[t]]
            ready = [t for t in left if all(goal[u] >= count for u, count in needs[t][goal[t]])]
            if not left:
                break
            goal[min(ready or left, key=lambda t: lanes[t].key[goal[t]])] += 1
        return goal

    def _closed(self, goal: list[int]) -> list[int]:
        """With everything that is known to be before."""
        bounds = self._frontier.problem.bounds
        moved = True
        while moved:
            moved = False
            for t, count in enumerate(goal):
                for u, needed in enumerate(bounds[t][count - 1].tolist() if count else ()):
                    if needed > goal[u]:
                        goal[u], moved = needed, True
        return goal

    def _ask(self, window: Window, share: float, *, whole_problem: bool) -> list[int] | None:
        began = time.monotonic()
        try:
            return self._order_of(window, began + share * (self._deadline - began), whole_problem)
        finally:
            self.seconds += time.monotonic() - began

    def _order_of(self, window: Window, deadline: float, whole_problem: bool) -> list[int] | None:
        frontier = self._frontier

        def expired() -> bool:
            return time.monotonic() > deadline

        try:
            query = encode(frontier.problem, frontier.machine, frontier.needs, window, expired)
        except OutOfTime:
            return None
        answer = ask(query, deadline - time.monotonic(), explain=whole_problem)
        if answer.status == "unsat" and whole_problem:
            raise Clash(answer.clash)
        if answer.status != "sat":
            return None
        way = [t for t, _ in self._late_ends(_sequence(query.operations, answer, query.required))]
        depth = len(frontier.trail)
        followed = frontier.follow(way)
        frontier.restart_at(depth)
        self.count += followed
        return way if followed else None

    def _late_ends(self, order: list[Where]) -> list[Where]:
        """What ends the process only where something needs it to have happened: what follows it is not replayed."""
        problem = self._frontier.problem
        ends = [(t, i) for t, i in order if problem.lanes[t].ops.kind[i] in LASTS]
        for t, i in ends:
            place = order.index((t, i))
            after = range(place + 1, len(order))
            stop = next((n for n in after if order[n][0] == t or problem.bounds[order[n][0]][order[n][1], t] > i), None)
            stop = len(order) if stop is None else stop
            order = [*order[:place], *order[place + 1 : stop], (t, i), *order[stop:]]
        return order


def _sequence(operations: list[Where], answer: Answer, required: int) -> list[Where]:
    """What happens within the window, in order; what may be left for later and comes last is left."""
    end = answer.places[-1]
    taken = sorted(n for n in range(len(operations)) if answer.places[n] < end)
    taken.sort(key=lambda n: answer.places[n])
    while taken and taken[-1] >= required:
        taken.pop()
    return [operations[n] for n in taken]
