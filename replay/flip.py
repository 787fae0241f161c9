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


def find_decisive(schedule: Schedule, candidates: Candidates, seconds: float) -> Candidate | None:
    """The last pair that must be in its order for the program to fail; None where there is none, or the time is up.

    `candidates` are the last first. What is flipped before the run was lost passes, because little of the recorded
    order is left; what is flipped after that fails. So far back as one by one is too slow, strides grow until one
    passes, and halving finds the last.
    """
    end = time.monotonic() + seconds

    def decides(place: int) -> bool:
        candidate = candidates[place]
        return candidate is not None and time.monotonic() < end and passes_flipped(schedule, candidate)

    if not candidates:
        return None
    fails, place, last = -1, 0, len(candidates) - 1
    while not decides(place):
        if place == last:
            return None
        fails, place = place, min(place + max(1, place - ONE_BY_ONE), last)
    while place - fails > 1:
        middle = (place + fails) // 2
        if decides(middle):
            place = middle
        else:
            fails = middle
    return candidates[place] if time.monotonic() < end else None


def passes_flipped(schedule: Schedule, candidate: Candidate) -> bool:
    """Does the program pass every time when these two are in the other order?"""
    other = flipped(schedule, candidate)
    if other is None:
        return False
    with Replayer(other) as replayer:
        for _ in range(RUNS):
            run = replayer.run()
            if run.verdict.failed or run.divergence is not None:
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
