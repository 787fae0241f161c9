"""Guests whose cores move between host cores with different counters: no false alarms, no missed changes."""

from dataclasses import replace

import numpy as np
import pytest
from tests.support import QUICK, fake_root

from recbulc.calibration.calibrate import calibrate, look_again
from recbulc.calibration.change import compare_models, smallest_detectable_ticks
from recbulc.calibration.moves import MOST_VALUES, MoveHistory, load_history, recall, remembered
from recbulc.errors import InputError
from recbulc.tsc_probe.machine import read_machine
from recbulc.tsc_probe.simulated import Counters, SimulatedClock, SimulatedProber

CONFIDENCE = 0.99999
EFFORT = replace(QUICK, idle_seconds=0.1)


class MovingProber(SimulatedProber):
    """Two cores of a guest; each idle spell may put them on other host cores, whose counters differ."""

    def __init__(self, host_ticks, moves_per_second, seed, injected=0.0):
        super().__init__({}, Counters(26, bumps=True), now=1e6 * (seed + 1), seed=seed)
        self.host_ticks, self.moves_per_second, self.injected = host_ticks, moves_per_second, injected
        self._moves = np.random.default_rng(seed + 10_000)
        self._place()

    def idle(self, seconds):
        super().idle(seconds)
        if self._moves.random() < seconds * self.moves_per_second:
            self._place()

    def _place(self):
        one, two = self._moves.choice(self.host_ticks, 2, replace=False)
        self.clocks = {0: SimulatedClock(float(one)), 1: SimulatedClock(float(two) + self.injected)}


class Guest:
    """A machine on which calibrations follow each other, as with the command."""

    def __init__(self, root, host_ticks, moves_per_second):
        self.machine = read_machine(fake_root(root))
        self.host_ticks, self.moves_per_second = host_ticks, moves_per_second
        self.history = MoveHistory(self.machine.identity, 0)
        self.seed = 0

    def measure(self, injected=0.0):
        self.seed += 1
        prober = MovingProber(self.host_ticks, self.moves_per_second, self.seed, injected)
        model = calibrate(self.machine, prober, (0, 1), effort=EFFORT, injected=bool(injected))

        def look(pair, seconds):
            return look_again(self.machine, prober, model, pair, seconds)

        if not injected:
            recalled, self.history = recall(self.history, model, CONFIDENCE, look, 6)
            return recalled, look
        return model, look

    def changed(self, old, injected=0.0):
        new, look = self.measure(injected)
        return compare_models(old, new, CONFIDENCE, look).changed


NEAR = (0.0, 3.0, 13.0, 26.0, 28.0)  # d within ±28, as on one EPYC
FAR = (0.0, 4.0, 15.0, 30.0, 41.0, 57.0)  # d within ±57, as on another


@pytest.mark.parametrize("host_ticks", [NEAR, FAR])
@pytest.mark.parametrize("moves_per_second", [0.3, 3.0])
def test_moves_are_no_change_and_changes_are_seen(tmp_path, host_ticks, moves_per_second):
    guest = Guest(tmp_path, host_ticks, moves_per_second)
    alarms = missed = 0
    for _ in range(8):
        old, _ = guest.measure()
        alarms += guest.changed(old)
        smallest = smallest_detectable_ticks(old, CONFIDENCE)
        missed += not guest.changed(old, 1_000)
        if smallest <= 100:
            missed += not guest.changed(old, 100)
            missed += not guest.changed(old, -100)
    assert (alarms, missed) == (0, 0)


def test_what_moves_span_is_learnt_and_reported(tmp_path):
    guest = Guest(tmp_path, FAR, 3.0)
    for _ in range(10):
        model, _ = guest.measure()
    seen = model.pairs[0].seen
    assert -60 < min(seen) < -40
    assert 40 < max(seen) < 60
    assert smallest_detectable_ticks(model, CONFIDENCE) > max(seen) - min(seen)


def test_a_changed_clock_starts_a_new_history(tmp_path):
    guest = Guest(tmp_path, NEAR, 3.0)
    for _ in range(3):
        guest.measure()
    before = guest.history.seen["0,1"]
    prober = MovingProber(NEAR, 3.0, 77, injected=5_000.0)
    model = calibrate(guest.machine, prober, (0, 1), effort=EFFORT)
    model, history = recall(guest.history, model, CONFIDENCE, lambda *_: [], 6)
    assert max(before) < 40
    assert min(history.seen["0,1"]) > 4_900
    assert model.pairs[0].seen == history.seen["0,1"]


def test_a_history_is_of_one_boot_and_only_a_cache(tmp_path):
    machine = read_machine(fake_root(tmp_path / "root")).identity
    path = tmp_path / "moves.json"
    history = MoveHistory(machine, 5, {"0,1": (1.0, 30.0)})
    history.save(path)
    assert load_history(path, machine, 6) == history
    nothing = MoveHistory(machine, 60 * 10**9)
    assert load_history(path, machine, nothing.suspended_ns) == nothing  # slept since
    other = replace(machine, boot_id="another")
    assert load_history(path, other, 5) == MoveHistory(other, 5)
    for damage in (b"", b"{", b"[]", b"\xff", path.read_bytes()[:-9], b'{"format": "x"}'):
        path.write_bytes(damage)
        assert load_history(path, machine, 5) == MoveHistory(machine, 5)
    assert load_history(tmp_path / "none.json", machine, 5) == MoveHistory(machine, 5)
    with pytest.raises(InputError, match="cannot write"):
        history.save(path / "below.json")


def test_a_history_counts_moves_and_is_bounded(simulate):
    pair = simulate([0, 50]).pairs[0]
    still = replace(pair, stretches=((50.0, 50.5),))
    assert remembered((10.0, 50.0), still) == (10.0, 50.0)
    assert remembered((50.0, 10.0), still) == (50.0, 10.0, 50.25)
    assert len(remembered(tuple(range(0, 10_000, 10)), still)) == MOST_VALUES
