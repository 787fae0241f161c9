"""What stamps prove, against the definition and against simulated cores whose skews and whose order are known."""

import random
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.ordering.truth import claimed_wrongly
from tests.unit.solver.programs import STYLES, simulated

from recbulc.ordering.events import Recording
from recbulc.ordering.ops import NEVER, split
from recbulc.ordering.stamps import stamp_bounds
from recbulc.recorders.events import EVENT, Kind

SKEW = 5_000  # longer than what the simulated threads do between two switches


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(STYLES), st.integers(2, 4), st.sampled_from([0, 3, 40, 400]))
def test_no_order_by_stamps_alone_is_wrong(seed, style, threads, slack):
    simulator, recording = simulated(seed, style, threads, slack=slack)
    ops = split(recording)
    assert not claimed_wrongly(simulator, ops, stamp_bounds(ops, recording.interval))


def moved(recording, core, ticks):
    """The clock of one core set forward, and its intervals with it."""
    threads = []
    for log in recording.threads:
        copy = log.copy()
        copy["before"] += np.where(copy["core"] == core, ticks, 0).astype(np.uint64)
        copy["after"] += np.where((copy["core_after"] == core) & (copy["after"] != 0), ticks, 0).astype(np.uint64)
        threads.append(copy)

    def interval(x, y):
        shift = ticks * ((y == core) - (x == core))
        lo, hi = recording.interval(x, y)
        return lo + shift, hi + shift

    return replace(recording, threads=tuple(threads), interval=interval)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(STYLES), st.integers(-SKEW, SKEW))
def test_a_clock_set_forward_changes_no_order(seed, style, ticks):
    _, recording = simulated(seed, style, 3)
    plain, other = split(recording), split(moved(recording, 1, ticks))
    for mine, same in zip(
        stamp_bounds(plain, recording.interval), stamp_bounds(other, moved(recording, 1, ticks).interval), strict=True
    ):
        assert (mine == same).all()


def test_a_skew_that_the_interval_does_not_know_shows_as_wrong_orders():
    wrong = 0
    for seed in range(40):
        simulator, recording = simulated(seed, "increments", 2, length=20)
        if len({int(core) for log in recording.threads for core in log["core"]}) < 2:
            continue
        lied = replace(moved(recording, 1, SKEW), interval=recording.interval)
        ops = split(lied)
        wrong += bool(claimed_wrongly(simulator, ops, stamp_bounds(ops, lied.interval)))
    assert wrong


def wandering(rng, cores, length, skews):
    """Events one after the other whose thread moves from core to core, with the truth in `now`."""
    log, now, when = np.zeros(length, EVENT), 10_000, []
    for event in log:
        first, last = rng.randrange(cores), rng.randrange(cores)
        now += rng.randrange(1, 60)
        begin = now
        now += rng.randrange(1, 60)
        when.append((begin, now))
        event["kind"], event["core"], event["core_after"] = Kind.WRITE, first, last
        event["before"], event["after"] = begin + skews[first], now + skews[last]
    if rng.random() < 0.5:
        log[-1]["after"] = 0  # it never ended
    return log, when


@pytest.mark.parametrize("seed", range(30))
def test_the_claims_are_those_of_the_definition_also_of_threads_that_move(seed):
    rng = random.Random(seed)
    cores = rng.choice([1, 2, 4])
    skews = [rng.randrange(-200, 200) for _ in range(cores)]
    slack = rng.randrange(0, 100)
    logs, times = zip(*(wandering(rng, cores, 25, skews) for _ in range(3)), strict=True)

    def interval(x, y):
        return (skews[y] - skews[x] - slack, skews[y] - skews[x] + slack) if x != y else (0, 0)

    threads = split(Recording(logs, interval))
    bounds = stamp_bounds(threads, interval)
    for t, u in permutations(range(3), 2):
        for i in range(25):
            # by the definition one of my operations up to i is after one of u's from j on
            direct = [
                any(
                    threads[u].after[later] != NEVER
                    and threads[u].after[later]
                    + interval(int(logs[u]["core_after"][later]), int(logs[t]["core"][earlier]))[1]
                    < threads[t].before[earlier]
                    for later in range(j, 25)
                    for earlier in range(i + 1)
                )
                for j in range(25)
            ]
            assert bounds[t][i, u] == sum(direct)
            assert all(times[u][j][1] < times[t][i][1] for j in range(sum(direct)))
