"""The C probes on this machine's cores."""

import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from tests.support import X, Y

from recbulc.calibration.interval import intersection
from recbulc.calibration.scheme1 import handoff_bounds, race_bounds, shortest_round_trip
from recbulc.errors import MachineError
from recbulc.tsc_probe import native
from recbulc.tsc_probe.native import NativeProber
from recbulc.tsc_probe.overflow import difference
from recbulc.tsc_probe.rounds import Shape, Tester
from recbulc.tsc_probe.sequences import SEQUENCES, SOUND_SEQUENCES
from recbulc.tsc_probe.skew import Skew, Skews

HEADER = Path(native.__file__).parent / "csrc" / "rb_clock.h"
PAIR = (X, Y)
OFFSET = 10**9
PROBER = NativeProber()
SHIFTED = NativeProber(Skews({str(Y): Skew(offset_ticks=OFFSET)}))


def test_sequences_are_those_of_the_header_in_its_order():
    listed = re.findall(r'X\("(\w+)", \w+, (\d)\)', HEADER.read_text())
    assert tuple(name for name, _ in listed) == SEQUENCES
    assert tuple(name for name, keeps in listed if keeps == "1") == SOUND_SEQUENCES


@pytest.mark.parametrize("tester", list(Tester))
def test_races_are_won_by_both_sides(tester):
    rounds = PROBER.race(PAIR, tester, 400 if tester is Tester.B else 4_000)
    share = np.mean(rounds.first == 0)
    assert 0.1 < share < 0.9
    assert not rounds.migrated.any()


def test_sound_testers_agree_with_each_other():
    """Raw bounds of quantised readings may cross by two granules, no more."""
    bounds = [
        race_bounds(PROBER.race(PAIR, tester, 4_000)) for tester in Tester if tester.sound and tester.value != "5b"
    ]
    bounds.append(handoff_bounds(PROBER.handoff(PAIR, 4_000)))
    assert not intersection(bounds).widened(100).contradictory


def test_stamps_of_a_handoff_are_in_order_on_their_core():
    rounds = PROBER.handoff(PAIR, 4_000)
    assert np.all(rounds.sent[1:] > rounds.back[:-1])
    assert np.all(rounds.back > rounds.sent)
    assert 0 < shortest_round_trip(rounds) < 1_000_000


def test_the_flag_reaches_first_whoever_released_it():
    rounds = PROBER.flag(PAIR, None, 12_800)
    diffs = difference(rounds.ts1, rounds.ts0, 64)
    assert np.median(diffs[rounds.trigger == 0]) > np.median(diffs[rounds.trigger == 1])
    assert rounds.first_is_known


def test_a_third_core_can_release_the_flag():
    """Three threads on the cores there are (so two of them share one): slow, but every round ends, signs included."""
    rounds = SHIFTED.flag(PAIR, X, 40)
    assert not rounds.first_is_known
    assert np.all(rounds.trigger == 2)
    assert np.median(difference(rounds.ts1, rounds.ts0, 64)) == pytest.approx(OFFSET, rel=0.3)


def test_every_probe_sees_an_injected_offset():
    race = SHIFTED.race(PAIR, Tester.C, 2_000)
    assert OFFSET in race_bounds(race).widened(1_000)
    handoff = SHIFTED.handoff(PAIR, 2_000)
    assert OFFSET in handoff_bounds(handoff).widened(1_000)
    flag = SHIFTED.flag(PAIR, None, 2_048)
    assert np.median(difference(flag.ts1, flag.ts0, 64)) == pytest.approx(OFFSET, abs=10_000)
    litmus = SHIFTED.litmus(PAIR, Shape.STORE, "2e", 2_000)
    assert np.median(difference(litmus.stamp1, litmus.stamp0, 64)) == pytest.approx(OFFSET, abs=100_000)
    plain, shifted = PROBER.readings(Y, 10)[0], SHIFTED.readings(Y, 10)[0]
    assert 0 <= int(shifted) - int(plain) - OFFSET < 10**11
    plain, shifted = PROBER.counter_and_clock(Y)[0], SHIFTED.counter_and_clock(Y)[0]
    assert 0 <= shifted - plain - OFFSET < 10**11


def test_an_injected_rate_counts_from_its_origin():
    origin = int(PROBER.readings(Y, 1)[0])
    fast = NativeProber(Skews({str(Y): Skew(rate_ppm=1e5, origin=origin)}))  # a tenth faster
    raw, _ = PROBER.counter_and_clock(Y)
    skewed, _ = fast.counter_and_clock(Y)
    ahead, _ = PROBER.counter_and_clock(Y)
    assert (raw - origin) * 1.1 <= skewed - origin <= (ahead - origin) * 1.1


def test_a_narrow_counter_stays_within_its_width():
    narrow = NativeProber(Skews(width_bits=20))
    readings = narrow.readings(X, 20_000)
    assert readings.max() < 1 << 20
    assert np.any(readings[1:] < readings[:-1])


def test_a_core_that_cannot_be_pinned_is_an_error():
    with pytest.raises(MachineError, match="pinned"):
        PROBER.race((X, 4095), Tester.C, 100)
    with pytest.raises(MachineError, match="pinned"):
        PROBER.race((X, 1 << 20), Tester.C, 100)


def test_starved_threads_end_in_an_error_not_in_a_hang(monkeypatch):
    """A real-time thread holds core Y, so that the probe's thread there never runs."""
    monkeypatch.setattr(native, "PATIENCE_MS", 200)
    stop, holding = threading.Event(), threading.Event()
    refused: list[OSError] = []

    def hold() -> None:
        os.sched_setaffinity(0, {Y})
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        except OSError as error:
            refused.append(error)
        holding.set()
        while not stop.is_set() and not refused:
            sum(range(10_000))

    mask = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {X})  # this thread, and the watchdog with it, away from the held core
    thread = threading.Thread(target=hold)
    thread.start()
    try:
        holding.wait()
        if refused:
            pytest.skip("real-time scheduling needs privileges")
        with pytest.raises(MachineError, match="no progress"):
            PROBER.handoff(PAIR, 1_000_000)
    finally:
        stop.set()
        thread.join()
        os.sched_setaffinity(0, mask)
