"""A window of a problem as a query: known order, reads-from, synchronisation (ReCBuLC §4.2 and Fig. 8).

Choices are pruned by known order and by value before anything is encoded: a solver gains nothing from stamps that are
merely asserted (DESIGN §5).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from recbulc.solver.encode_places import START, OutOfTime, Places, Window
from recbulc.solver.encode_sync import add_synchronisation
from recbulc.solver.encode_terms import Before, Chosen, Fact, Query, Term, all_of, any_of
from recbulc.solver.guards import Needs
from recbulc.solver.machine import Machine
from recbulc.solver.problem import ANY, Problem


def encode(
    problem: Problem,
    machine: Machine,
    needs: list[list[Needs]],
    window: Window,
    expired: Callable[[], bool] = lambda: False,
) -> Query:
    """The whole query; `machine` is in the state in which the window begins. May raise OutOfTime."""
    places = Places(problem, needs, window)
    add_known_order(places)
    add_memory(places, expired)
    add_synchronisation(places, machine, expired)
    return places.query


def add_known_order(places: Places) -> None:
    """Program order, and what was known before."""
    query, window = places.query, places.window
    for t, needs in enumerate(places.needs):
        for i in range(*places.spans[t]):
            here = places.number[t, i]
            if i > window.start[t]:
                query.facts.append(Fact(Before(places.number[t, i - 1], here), ()))
            for u, count in needs[i]:
                if count > window.stop[u]:
                    places.state(False, here)  # not before something outside
                elif count > window.start[u]:
                    query.facts.append(Fact(Before(places.number[u, count - 1], here), ((u, count - 1), (t, i))))


def add_memory(places: Places, expired: Callable[[], bool] = lambda: False) -> None:
    """Every read sees the last write to each of its cells."""
    problem = places.problem
    reads: dict[int, list[tuple[int, int]]] = defaultdict(list)
    writes: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, (t, i) in enumerate(places.query.operations):
        gets, puts = problem.lanes[t].reads[i], problem.lanes[t].writes[i]
        if (t, i) in problem.external:  # whoever wrote that did so just then
            puts = (*(get for get in gets if get[0] not in {cell for cell, _ in puts}), *puts)
            gets = ()
        for cell, value in gets:
            reads[cell].append((number, value))
        for cell, value in puts:
            writes[cell].append((number, value))
    for cell, readers in reads.items():
        start = places.window.memory[cell]
        undefined: dict[int, list[tuple[int, int, Chosen]]] = defaultdict(list)  # by write: who sees it, as what
        for read, value in readers:
            if expired():
                raise OutOfTime
            _add_read(places, read, value, [(START, start), *writes[cell]], undefined)
        for seen in undefined.values():
            for k, (one, value, choice) in enumerate(seen):
                for another, other_value, other in seen[:k]:
                    if value != other_value:
                        places.not_both(choice, other, one, another)


def _add_read(
    places: Places,
    read: int,
    value: int,
    writes: list[tuple[int, int]],
    undefined: dict[int, list[tuple[int, int, Chosen]]],
) -> None:
    """One of the writes of this value is before the read, with no other value written in between."""
    before = places.before
    others = [write for write, other in writes if other != value and write not in (START, read)]
    others = [write for write in others if before(read, write) is not True]
    sure = [write for write, other in writes if other == value and write != read and before(write, read) is True]
    ways: list[Term] = []
    for write, other in writes:
        if other not in (value, ANY) or write == read or any(before(write, later) is True for later in sure):
            continue
        parts: list[Term] = [before(write, read)]
        for third in others if parts[0] is not False else ():
            if third != write:
                parts.append(any_of([before(third, write), before(read, third)]))
                if parts[-1] is False:
                    break
        way = all_of(parts)
        if way is not False and other == ANY:  # the first to read it defines it
            choice = places.chosen_if(way, read)
            undefined[write].append((read, value, choice))
            way = choice
        ways.append(way)
    places.state(any_of(ways), read)
