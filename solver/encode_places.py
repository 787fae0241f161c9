"""A window of a problem, its operations as order variables, and what is known about their order.

A window is a stretch of operations of every thread, the state in which it begins, and how far each thread must get;
what is beyond that may or may not happen within the window. A whole problem is the window with no beginning and no
rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from recbulc.solver.encode_terms import Before, Chosen, Fact, Query, Term, any_of
from recbulc.solver.guards import Needs
from recbulc.solver.machine import Key
from recbulc.solver.problem import ANY, Problem

START, NEVER = -1, -2  # before and behind every operation


class OutOfTime(Exception):  # noqa: N818 (an outcome)
    """The query was not complete when time was up."""


@dataclass(frozen=True)
class Window:
    """Operations [start, stop) of each thread, of which those before `goal` must happen; and the state at the start."""

    start: tuple[int, ...]
    goal: tuple[int, ...]
    stop: tuple[int, ...]
    memory: Sequence[int]  # by cell
    state: dict[Key, Any]

    def __len__(self) -> int:
        return sum(self.stop) - sum(self.start)


def whole(problem: Problem) -> Window:
    """Everything."""
    start = (0,) * len(problem.lanes)
    return Window(
        start, tuple(lane.required for lane in problem.lanes), furthest(problem), [ANY] * len(problem.cells), {}
    )


def furthest(problem: Problem) -> tuple[int, ...]:
    """How far each thread may get: what did not end may have written."""
    stops = []
    for lane in problem.lanes:
        stop = lane.required
        while stop < len(lane) and lane.writes[stop]:
            stop += 1
        stops.append(stop)
    return tuple(stops)


class Places:
    """The operations of a window by the numbers of their variables, and what is known about their order."""

    def __init__(self, problem: Problem, needs: list[list[Needs]], window: Window) -> None:
        threads = range(len(problem.lanes))
        self.problem = problem
        self.needs = needs
        self.window = window
        self.spans = tuple(zip(window.start, window.stop, strict=True))
        self._rows = [problem.bounds[t][first:stop].tolist() for t, (first, stop) in enumerate(self.spans)]
        must = [(t, i) for t in threads for i in range(window.start[t], window.goal[t])]
        may = [(t, i) for t in threads for i in range(window.goal[t], window.stop[t])]
        self.query = Query(must + may, len(must))
        self.number = {where: number for number, where in enumerate(self.query.operations)}

    def before(self, a: int, b: int) -> bool | Before:
        """Is a before b, as far as that is known? a and b may be START and NEVER."""
        if a == b or NEVER in (a, b) or START in (a, b):
            return a != b and (a == START or b == NEVER)
        t, i = self.query.operations[a]
        u, j = self.query.operations[b]
        if self._rows[u][j - self.window.start[u]][t] > i:
            return True
        return False if self._rows[t][i - self.window.start[t]][u] > j else Before(a, b)

    def where(self, *places: int) -> tuple[tuple[int, int], ...]:
        """Of numbers; START and NEVER are nowhere."""
        return tuple(dict.fromkeys(self.query.operations[place] for place in places if place >= 0))

    def state(self, term: Term, *who: int) -> None:
        """Add a fact that holds if all of these happen within the window."""
        left = [Before(self.query.end, place) for place in who if place >= self.query.required]
        term = any_of([term, *left])
        if term is not True:
            self.query.facts.append(Fact(term, self.where(*who)))

    def chosen_if(self, term: Term, *who: int) -> Chosen:
        """A choice that needs this."""
        choice = self.query.choice()
        self.query.facts.append(Fact(any_of([Chosen(choice.number, holds=False), term]), self.where(*who)))
        return choice

    def not_both(self, a: Chosen, b: Chosen, *who: int) -> None:
        """Two choices exclude each other."""
        parts = [Chosen(choice.number, holds=False) for choice in (a, b)]
        self.query.facts.append(Fact(any_of(parts), self.where(*who)))
