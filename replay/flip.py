"""Two operations of a failing schedule in the other order: does the program still fail?

PRES flips an open pair to find a failure; here a pair is flipped to see whether the failure depends on it. Everything
that was not after the pair is enforced as recorded, then the pair the other way round, then the threads run free.
"""

from __future__ import annotations

import time

import msgspec

from recbulc.recorders.events import Kind
from recbulc.replay.replay import Replayer
from recbulc.schedule import Op, Part, Schedule, Verdict
from recbulc.solver.racing import Candidate, Candidates

RUNS = 5  # that must all pass
ONE_BY_ONE = 24
FAR_WITHIN = 200  # candidates behind one, of which some lie within it
MOST_WITHIN = 8


def find_decisive(schedule: Schedule, candidates: Candidates, seconds: float) -> Candidate | None:
    """The last pair that must be in its order for the program to fail; None where there is none, or the time is up.

    `candidates` are the last first. What is flipped before the run was lost passes, because little of the recorded
    order is left; what is flipped after that fails. So far back as one by one is too slow, strides grow until one
    passes, and halving finds the last; what cannot be flipped is no evidence of either. A flip turns round what lies
    within the pair, too: of the pairs within, the innermost that passes is the one.
    """
    search = _Search(schedule, candidates, time.monotonic() + seconds)
    place = search.last_that_passes()
    return search.innermost(place) if place is not None else None


class _Search:
    def __init__(self, schedule: Schedule, candidates: Candidates, end: float) -> None:
        self._schedule = schedule
        self._candidates = candidates
        self._end = end
        self._known: dict[int, bool | None] = {}

    def last_that_passes(self) -> int | None:
        """The lowest place, as far as the strides tell."""
        fails, place, last = -1, 0, len(self._candidates) - 1
        while place <= last and not self._passes(place):
            if place == last or time.monotonic() > self._end:
                return None
            if self._passes(place) is not None:
                fails = place
            place = min(place + max(1, place - ONE_BY_ONE), last)
        if place > last:
            return None
        while place - fails > 1:
            middle = next((n for n in range((place + fails) // 2, place) if self._passes(n) is not None), None)
            if middle is None:  # nothing between can be flipped
                middle = next((n for n in range((place + fails) // 2, fails, -1) if self._passes(n) is not None), None)
            if middle is None:
                break
            if self._passes(middle):
                place = middle
            else:
                fails = middle
        return place if time.monotonic() < self._end else None

    def innermost(self, place: int) -> Candidate | None:
        """Of the candidates within this one, the smallest that passes; itself where none does."""
        whole = self._candidates[place]
        assert whole is not None
        within = []
        for other in range(place + 1, min(place + 1 + FAR_WITHIN, len(self._candidates))):
            inner = self._candidates[other]
            if inner and _lies_within(inner, whole):
                within.append((inner.until[1] - inner.held[1], other))
        for _, other in sorted(within)[:MOST_WITHIN]:
            if self._passes(other):
                return self._candidates[other]
        return whole

    def _passes(self, place: int) -> bool | None:
        if place not in self._known:
            candidate = self._candidates[place]
            late = time.monotonic() > self._end
            self._known[place] = None if candidate is None or late else passes_flipped(self._schedule, candidate)
        return self._known[place]


def _lies_within(inner: Candidate, whole: Candidate) -> bool:
    (t, held), (u, until) = inner.held, inner.until
    return (t, u) == (whole.held[0], whole.until[0]) and held > whole.held[1] and until < whole.until[1]


def passes_flipped(schedule: Schedule, candidate: Candidate) -> bool | None:
    """Does the program pass every time when these two are in the other order? None: they cannot be."""
    other = flipped(schedule, candidate)
    if other is None:
        return None
    with Replayer(other) as replayer:
        for _ in range(RUNS):
            run = replayer.run()
            if run.divergence is not None:
                return None
            if run.verdict.failed:
                return False
    return True


def flipped(schedule: Schedule, candidate: Candidate) -> Schedule | None:
    """The schedule up to the pair, with `held` after `until`; None where what `until` needs comes after `held`."""
    (t, held), (u, until) = candidate.held, candidate.until
    cut = [len(thread.ops) for thread in schedule.threads]
    cut[t], cut[u] = held, until + 1
    if any(_is_woken(op) and any(w == t and n > held for w, n in op.waits) for op in schedule.threads[u].ops[: cut[u]]):
        return None
    lists = [list(thread.ops) for thread in schedule.threads]
    lists[u] = [_turned(op, t, held) for op in lists[u]]
    creations = ((op.value, v, place) for v, ops in enumerate(lists) for place, op in enumerate(ops) if _creates(op))
    begins = {child: (v, place) for child, v, place in creations}
    moved = True
    while moved:
        moved = False
        for v, ops in enumerate(lists):
            parent, created = begins.get(v, (0, -1))
            if cut[v] and created >= cut[parent]:
                cut[v], moved = 0, True
            for place in range(cut[v]):
                if any(count > cut[w] for w, count in ops[place].waits):
                    cut[v], moved = place, True
                    break
    if cut[t] != held or cut[u] != until + 1:
        return None
    last = lists[t][held]
    lists[t][held] = msgspec.structs.replace(last, waits=(*last.waits, (u, until + 1)))
    cut[t] += 1
    threads = tuple(
        msgspec.structs.replace(thread, ops=tuple(ops[:end]))
        for thread, ops, end in zip(schedule.threads, lists, cut, strict=True)
    )
    verdict = Verdict("passed", fail_if=schedule.verdict.fail_if)
    return msgspec.structs.replace(schedule, threads=threads, verdict=verdict, racing=())


def _creates(op: Op) -> bool:
    return op.kind == Kind.CREATE


def _is_woken(op: Op) -> bool:
    """Can this only come after what it waits for?"""
    return op.kind in (Kind.COND_WAIT, Kind.SEM_WAIT, Kind.BARRIER_WAIT, Kind.JOIN, Kind.ONCE) and op.part != Part.BEGIN


def _turned(op: Op, t: int, held: int) -> Op:
    """Waits for what is now held back become waits for what comes before that."""
    if all(w != t or count <= held for w, count in op.waits):
        return op
    return msgspec.structs.replace(op, waits=tuple((w, min(count, held) if w == t else count) for w, count in op.waits))
