"""What each run gets, drawn from the seed."""

from collections import Counter

import numpy as np
import pytest

from recbulc.errors import InputError
from recbulc.recorders.control import THREAD, Knobs
from recbulc.recorders.provoke import SLOWDOWN, STRATEGIES, Mixed, Plan
from recbulc.recorders.runner import RunResult

RUNS = 2_000


def went(seconds: float, how="exit") -> RunResult:
    return RunResult(how, 0, seconds, b"", b"", np.zeros(0, dtype=THREAD))


def learned(seed: int, forced=None, *, seconds=0.01, accesses=1_000, syncs=100) -> Mixed:
    portfolio = Mixed(seed, forced)
    portfolio.learn(portfolio.plan(0), went(seconds), accesses, syncs)
    return portfolio


def test_the_same_seed_gives_the_same_runs():
    assert [learned(5).plan(run) for run in range(50)] == [learned(5).plan(run) for run in range(50)]
    assert [learned(5).plan(run) for run in range(50)] != [learned(6).plan(run) for run in range(50)]


def test_every_strategy_has_its_share_and_plain_runs_are_plain():
    plans = [learned(1).plan(run) for run in range(1, RUNS)]
    counted = Counter(plan.strategy for plan in plans)
    for name, (_, share) in STRATEGIES.items():
        assert counted[name] / RUNS == pytest.approx(share, abs=0.05)
    for plan in plans:
        knobs = plan.knobs
        delays = (knobs.access_delay_ppm, knobs.sync_delay_ppm, knobs.start_us)
        assert (sum(delays) == 0) == (plan.strategy == "plain")
        assert (knobs.sync_delay_ppm > 0) == (plan.strategy == "sync")
        assert (knobs.access_delay_ppm > 0) == (plan.strategy == "access")
        assert (knobs.delay_us > 0) == (plan.strategy in {"access", "sync"})


def test_the_first_run_is_plain_and_a_forced_strategy_is_all_others():
    assert Mixed(1, "sync").plan(0).strategy == "plain"
    assert {learned(1, "sync").plan(run).strategy for run in range(1, 50)} == {"sync"}
    assert {learned(1, "plain").plan(run).knobs.delay_us for run in range(50)} == {0}


@pytest.mark.parametrize(("seconds", "accesses"), [(0.001, 50), (0.01, 10_000), (3.0, 10_000_000)])
def test_delays_together_stay_within_the_budget(seconds, accesses):
    """However long the program is, as many delays; and on average no more than ten times its time."""
    portfolio = learned(2, "access", seconds=seconds, accesses=accesses)
    for run in range(1, 500):
        knobs = portfolio.plan(run).knobs
        delays = accesses * knobs.access_delay_ppm / 1e6
        assert delays <= 65 or knobs.access_delay_ppm == 1
        assert delays * knobs.delay_us / 2 <= max(SLOWDOWN * seconds, 0.02) * 1e6 * 1.1


def test_only_plain_runs_that_ended_teach():
    portfolio = learned(1)
    seen = portfolio.seen
    portfolio.learn(Plan("access", Knobs()), went(9.0), 9, 9)
    portfolio.learn(Plan("plain", Knobs()), went(9.0, "timeout"), 9, 9)
    assert portfolio.seen == seen


def test_a_program_that_nobody_has_seen_is_not_stopped_dead():
    knobs = Mixed(1, "access").plan(1).knobs
    assert 0 < knobs.access_delay_ppm < 20_000


def test_there_is_no_other_strategy():
    with pytest.raises(InputError, match="no strategy 'luck'"):
        Mixed(1, "luck")
