"""The only file that knows z3: a query in, places for its operations or a clash out (ReCBuLC §4.2, CLAP).

Places are Int variables under difference constraints: bit-vectors and z3's special relations do not scale (DESIGN §5).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import z3  # type: ignore[import-untyped]

from recbulc.solver.encode_terms import AllOf, AnyOf, AtLeast, Before, Chosen, Fact, Query, Term

CORE_SHARE = 0.5  # of the time there was, for finding out which facts clash


@dataclass(frozen=True)
class Answer:
    """`places`: of every operation, then of the end. `clash`: facts that have no order together; empty if unknown."""

    status: Literal["sat", "unsat", "unknown"]
    places: tuple[int, ...] = ()
    clash: tuple[Fact, ...] = ()


def ask(query: Query, seconds: float, *, explain: bool = False) -> Answer:
    """Is there an order? Gives up (`unknown`) after so many seconds; `explain` asks for the clash if there is none."""
    deadline = time.monotonic() + seconds
    if any(fact.term is False for fact in query.facts):
        return Answer("unsat", clash=tuple(fact for fact in query.facts if fact.term is False)[:1])
    asked = _Asked(query)
    if not asked.add(query.facts, deadline):
        return Answer("unknown")
    found = asked.check(deadline)
    if found == z3.sat:
        return Answer("sat", asked.places())
    if found == z3.unknown:
        return Answer("unknown")
    return Answer("unsat", clash=_clash(query, time.monotonic() + CORE_SHARE * seconds) if explain else ())


def _clash(query: Query, deadline: float) -> tuple[Fact, ...]:
    """A small set of facts without an order; empty if that takes too long."""
    asked = _Asked(query, cores=True)
    asked.solver.set("core.minimize", True)
    if not asked.add(query.facts, deadline, tracked=True) or asked.check(deadline) != z3.unsat:
        return ()
    numbers = sorted(int(str(name)[1:]) for name in asked.solver.unsat_core())
    return tuple(query.facts[number] for number in numbers)


class _Asked:
    """A query in z3's terms, in a context of its own."""

    def __init__(self, query: Query, *, cores: bool = False) -> None:
        self.context = z3.Context()
        self.solver = z3.SimpleSolver(ctx=self.context) if cores else z3.SolverFor("QF_IDL", self.context)
        self.atoms: dict[Before, Any] = {}
        self.order = [z3.Int(f"o{i}", self.context) for i in range(len(query.operations) + 1)]
        self.choices = [z3.Bool(f"c{i}", self.context) for i in range(query.choices)]
        end = self.order[-1]
        self.solver.add([place < end for place in self.order[: query.required]])

    def add(self, facts: Iterable[Fact], deadline: float, *, tracked: bool = False) -> bool:
        """False when there was no time for all of them."""
        for number, fact in enumerate(facts):
            if number % 64 == 0 and time.monotonic() > deadline:
                return False
            if fact.term is True:
                continue
            if tracked:
                self.solver.assert_and_track(self.term(fact.term), f"f{number}")
            else:
                self.solver.add(self.term(fact.term))
        return True

    def check(self, deadline: float) -> z3.CheckSatResult:
        left = int(1000 * (deadline - time.monotonic()))
        if left <= 0:
            return z3.unknown
        self.solver.set("timeout", left)
        return self.solver.check()

    def places(self) -> tuple[int, ...]:
        model = self.solver.model()
        return tuple(model.eval(place, model_completion=True).as_long() for place in self.order)

    def term(self, term: Term) -> Any:  # noqa: ANN401 (z3 has no types)
        match term:
            case Before(first, second):
                if term not in self.atoms:
                    self.atoms[term] = self.order[first] < self.order[second]
                return self.atoms[term]
            case Chosen(number, holds):
                return self.choices[number] if holds else z3.Not(self.choices[number])
            case AllOf(parts):
                return z3.And([self.term(part) for part in parts])
            case AnyOf(parts):
                return z3.Or([self.term(part) for part in parts])
            case AtLeast(count, parts):
                return z3.AtLeast(*(self.term(part) for part in parts), count)
            case _:
                return z3.BoolVal(bool(term), self.context)
