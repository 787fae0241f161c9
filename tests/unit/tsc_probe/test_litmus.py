"""The permanent litmus test: the stamps we record with never claim a wrong order on this machine."""

import numpy as np
import pytest
from tests.support import X, Y

from recbulc.calibration.calibrate import calibrate
from recbulc.calibration.episode import Effort
from recbulc.tsc_probe.litmus import run_litmus, violations
from recbulc.tsc_probe.machine import read_machine
from recbulc.tsc_probe.native import NativeProber
from recbulc.tsc_probe.rounds import LitmusRounds, Shape


def rounds(shape, stamp0, stamp1, saw):
    return LitmusRounds(shape, np.array(stamp0, dtype=np.uint64), np.array(stamp1, dtype=np.uint64), np.array(saw))


def test_only_a_claimed_and_contradicted_order_is_a_violation():
    stamps = [1000] * 4, [1101, 1101, 1100, 900]
    assert violations(rounds(Shape.STORE, *stamps, [False, True, False, False]), hi_ticks=100) == 1
    assert violations(rounds(Shape.LOAD, *stamps, [False, True, True, True]), hi_ticks=100) == 1


@pytest.fixture(scope="module")
def results():
    machine, prober = read_machine(), NativeProber()
    model = calibrate(machine, prober, (X, Y), effort=Effort(rounds=20_000))
    return {r.sequence: r for r in run_litmus(prober, (X, Y), model.interval(X, Y).hi, rounds=100_000)}


@pytest.mark.parametrize("sequence", ["2c", "2d", "2e", "card"])
def test_sound_stamps_claim_no_wrong_order(results, sequence):
    assert results[sequence].rounds == 200_000
    assert results[sequence].violations == 0


def test_every_sequence_has_a_cost(results):
    assert all(result.ns > 0 for result in results.values())
