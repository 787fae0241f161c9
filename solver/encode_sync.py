"""The rules of synchronisation objects as facts: sections of locks, tokens, wake-ups, barriers, once (ReCBuLC Fig. 8).

Creation, joining and everything else that holds in every order is known order already. What the rules here do not
describe (a mutex that one thread locks and another unlocks, one set up again while held) is left to whoever tries the
order that was found: too few facts can never make a clash.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations

from recbulc.schedule import Part
from recbulc.solver.encode_places import NEVER, START, OutOfTime, Places
from recbulc.solver.encode_terms import Chosen, Term, all_of, any_of, at_least
from recbulc.solver.machine import FREE, UNKNOWN, Machine

Call = tuple[int, tuple[int, ...]]  # operation, and the arguments of its rule behind the thread
Calls = dict[str, list[Call]]  # by name of the machine's rule


@dataclass(frozen=True)
class Section:
    """One thread has a lock from one operation to another; START: before the window, NEVER: beyond it."""

    thread: int
    acquire: int
    release: int
    shared: bool = False


@dataclass(frozen=True)
class Sleep:
    """One wait on a condition: `wake` is NEVER for one that goes on, `forever` if it must never be woken."""

    begin: int
    wake: int
    signalled: bool
    forever: bool
    tokens: int = 0  # signals from before the window that it may use
    served: bool = False  # by a broadcast from before the window


def add_synchronisation(places: Places, machine: Machine, expired: Callable[[], bool] = lambda: False) -> None:
    """All objects that the window touches."""
    for (sort, thing), calls in _by_object(places, machine).items():
        if expired():
            raise OutOfTime
        if sort in ("lock", "rw"):
            _add_lock(places, sort, thing, calls)
        elif sort == "semaphore":
            _add_semaphore(places, machine, thing, calls)
        elif sort == "condition":
            _add_condition(places, thing, calls)
        elif sort == "barrier":
            _add_barrier(places, thing, calls)
        else:
            _add_once(places, thing, calls)


RULES = {
    "_lock": "lock", "_is_locked": "lock", "_unlock": "lock", "_init_mutex": "lock",
    "_rw": "rw", "_rw_busy": "rw", "_rw_unlock": "rw",
    "_take": "semaphore", "_is_empty": "semaphore", "_post": "semaphore", "_init_semaphore": "semaphore",
    "_fall_asleep": "condition", "_wake": "condition", "_signal": "condition", "_broadcast": "condition",
    "_arrive": "barrier", "_may_leave": "barrier",
    "_once": "once", "_was_run": "once",
}  # fmt: skip


def _by_object(places: Places, machine: Machine) -> dict[tuple[str, int], Calls]:
    """What the machine would do, by object; waits on a condition release and acquire their mutex, too."""
    found: dict[tuple[str, int], Calls] = defaultdict(lambda: defaultdict(list))
    for number, (t, i) in enumerate(places.query.operations):
        step = machine.steps[t][i]
        if step is None:
            continue
        may, do, arguments = step
        rule = do.__name__ if do.__name__ in RULES else may.__name__
        found[RULES[rule], arguments[0]][rule].append((number, arguments))
        if rule in ("_fall_asleep", "_wake"):
            found["lock", arguments[1]][rule].append((number, arguments))
    return found


def _by_thread(places: Places, calls: Calls, rules: Iterable[str]) -> dict[int, list[tuple[int, str, Call]]]:
    """(operation, rule, call) of each thread in program order."""
    found: dict[int, list[tuple[int, str, Call]]] = defaultdict(list)
    for rule in rules:
        for call in calls.get(rule, ()):
            t, i = places.query.operations[call[0]]
            found[t].append((i, rule, call))
    for row in found.values():
        row.sort()
    return found


def _add_lock(places: Places, sort: str, thing: int, calls: Calls) -> None:
    sections = _sections(places, sort, thing, calls)
    if sections is None:
        return
    before = places.before
    for a, b in combinations(sections, 2):
        if a.thread != b.thread and not (a.shared and b.shared):
            apart = any_of([before(a.release, b.acquire), before(b.release, a.acquire)])
            places.state(apart, a.acquire, b.acquire)
    for number, arguments in (*calls.get("_is_locked", ()), *calls.get("_rw_busy", ())):
        held = [s for s in sections if not (s.shared and arguments[-1])] if sort == "rw" else sections
        within = [all_of([before(s.acquire, number), before(number, s.release)]) for s in held]
        places.state(any_of(within), number)


def _sections(places: Places, sort: str, thing: int, calls: Calls) -> list[Section] | None:
    """None where sections do not describe what happens."""
    held: dict[int, list[tuple[int, bool]]] = defaultdict(list)
    if sort == "lock":
        owner, depth = places.window.state.get(("lock", thing), FREE)
        if owner >= 0:
            held[owner] = [(START, False)] * depth
    else:
        writer, readers = places.window.state.get(("rw", thing), (-1, ()))
        for t, shared in (*((t, True) for t in readers), *(((writer, False),) if writer >= 0 else ())):
            held[t].append((START, shared))
    found = []
    rules = ("_lock", "_unlock", "_rw", "_rw_unlock", "_fall_asleep", "_wake")
    for t, row in _by_thread(places, calls, rules).items():
        for _, rule, (number, arguments) in row:
            if rule in ("_lock", "_rw", "_wake"):
                held[t].append((number, rule == "_rw" and bool(arguments[1])))
            elif not held[t]:
                return None
            elif rule == "_rw_unlock" or len(held[t]) == 1:
                found.append(Section(t, held[t][-1][0], number, held[t].pop()[1]))
            elif rule == "_fall_asleep":
                found.append(Section(t, held[t][0][0], number))
                held[t].clear()
            else:
                held[t].pop()
    opened = [Section(t, row[0][0], NEVER, row[0][1]) for t, row in held.items() if row]
    return None if opened and calls.get("_init_mutex") else found + opened


def _add_semaphore(places: Places, machine: Machine, thing: int, calls: Calls) -> None:
    before = places.before
    count = machine.count(thing)
    inits, takes, posts, empties = (calls.get(name, []) for name in ("_init_semaphore", "_take", "_post", "_is_empty"))
    if inits:
        (first, arguments), rest = inits[0], (*takes, *posts, *empties)
        if len(inits) > 1 or not all(before(first, number) is True for number, _ in rest):
            return
        count = arguments[1]
    if count > UNKNOWN // 2:
        return
    for number, _ in takes:
        there = [before(post, number) for post, _ in posts]
        there += [before(number, take) for take, _ in takes if take != number]
        places.state(at_least(len(takes) - count, there), number)
    for number, _ in empties:
        gone = [before(number, post) for post, _ in posts] + [before(take, number) for take, _ in takes]
        places.state(at_least(count + len(posts), gone), number)


def _add_condition(places: Places, thing: int, calls: Calls) -> None:
    before = places.before
    tokens, sleeps = _sleeps(places, thing, calls)
    signals = [number for number, _ in calls.get("_signal", ())]
    broadcasts = [number for number, _ in calls.get("_broadcast", ())]
    lasting = any(sleep.forever for sleep in sleeps)
    used: dict[int, list[tuple[int, Chosen]]] = defaultdict(list)  # by signal; NEVER − 1 − n: from before the window
    got: list[list[tuple[int, Chosen]]] = []  # the same by sleep
    for sleep in sleeps:
        got.append([])
        woken = sleep.wake != NEVER and sleep.signalled
        if sleep.served or sleep.forever or not (woken or lasting):
            continue  # what nobody needs to have got may be lost, unless somebody sleeps on beside it
        for signal in (*signals, *range(NEVER - tokens, NEVER - tokens + sleep.tokens)):
            old = signal < NEVER
            term = True if old else all_of([before(sleep.begin, signal), before(signal, sleep.wake)])
            if term is not False:
                choice = places.chosen_if(term, sleep.wake, signal)
                used[signal].append((sleep.wake, choice))
                got[-1].append((signal, choice))
        ways: list[Term] = [all_of([before(sleep.begin, b), before(b, sleep.wake)]) for b in broadcasts]
        if woken:
            places.state(any_of([*ways, *(choice for _, choice in got[-1])]), sleep.wake)
    if lasting:
        _add_never_woken(places, sleeps, got, broadcasts, signals, used)
    for users in used.values():
        for (a, one), (b, other) in combinations(users, 2):
            places.not_both(one, other, a, b)


def _sleeps(places: Places, thing: int, calls: Calls) -> tuple[int, list[Sleep]]:
    """How many signals from before the window are unused, and who sleeps when."""
    _, broadcast, tokens, waiters = places.window.state.get(("condition", thing), (0, -1, (), ()))
    asleep: dict[int, Sleep] = {}
    for t, since, forever in waiters:
        usable = sum(token >= since for token in tokens)
        asleep[t] = Sleep(START, NEVER, True, forever, usable, broadcast >= since)
    found = []
    for t, row in _by_thread(places, calls, ("_fall_asleep", "_wake")).items():
        for _, rule, (number, arguments) in row:
            if rule == "_fall_asleep":
                asleep[t] = Sleep(number, NEVER, True, bool(arguments[2]))
            elif t in asleep:
                old = asleep.pop(t)
                found.append(Sleep(old.begin, number, bool(arguments[2]), False, old.tokens, old.served))
    return len(tokens), [*found, *asleep.values()]


def _add_never_woken(
    places: Places,
    sleeps: list[Sleep],
    got: list[list[tuple[int, Chosen]]],
    broadcasts: list[int],
    signals: list[int],
    used: dict[int, list[tuple[int, Chosen]]],
) -> None:
    """No signal is lost while somebody sleeps: it went to one of those who were woken, not to one who never was."""
    before = places.before
    for sleep, mine in zip(sleeps, got, strict=True):
        for (_, one), (_, other) in combinations(mine, 2):
            places.not_both(one, other, sleep.wake)
        for signal in signals:
            awake: list[Term] = [sleep.served, before(signal, sleep.begin), before(sleep.wake, signal)]
            awake += [all_of([before(sleep.begin, b), before(b, signal)]) for b in broadcasts if not sleep.forever]
            awake += [all_of([choice, before(other, signal) if other >= 0 else True]) for other, choice in mine]
            places.state(any_of([*awake, *(choice for _, choice in used[signal])]), signal, sleep.begin)
        for broadcast in broadcasts if sleep.forever else ():
            places.state(before(broadcast, sleep.begin), broadcast, sleep.begin)


def _add_barrier(places: Places, thing: int, calls: Calls) -> None:
    """Who arrived in round q leaves when all of that round have arrived."""
    before = places.before
    came = places.window.state.get(("barrier", thing), 0)
    arrivals = [number for number, _ in calls.get("_arrive", ())]
    mine: dict[int, int] = {}
    for t, row in _by_thread(places, calls, ("_arrive", "_may_leave")).items():
        for _, rule, (number, (_, parties)) in row:
            if rule == "_arrive":
                mine[t] = number
                continue
            there = [before(arrival, number) for arrival in arrivals]
            if t not in mine:
                turn = places.window.state.get(("round", thing * 65536 + t), 0)
                places.state(at_least((turn + 1) * parties - came, there), number)
                continue
            rank = [other for other in arrivals if other != mine[t]]
            for turn in range(came // parties, (came + len(arrivals)) // parties + 1):
                # fewer than turn × parties had arrived before mine, or the round is full
                later = [before(mine[t], other) for other in rank]
                earlier = at_least(len(rank) - (turn * parties - came) + 1, later)
                full = at_least((turn + 1) * parties - came, there)
                places.state(any_of([earlier, full]), number)


def _add_once(places: Places, thing: int, calls: Calls) -> None:
    before = places.before
    begins = [number for number, (_, part) in calls.get("_once", ()) if part == Part.BEGIN]
    ends = [number for number, (_, part) in calls.get("_once", ()) if part == Part.END]
    if places.window.state.get(("once", thing)) == Part.END:
        ends.append(START)
    for number, _ in calls.get("_was_run", ()):
        ways = [
            all_of([before(end, number), *(any_of([before(b, end), before(number, b)]) for b in begins)])
            for end in ends
        ]
        places.state(any_of(ways), number)
