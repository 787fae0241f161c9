"""Simulated cores: made-up clocks whose skew is known, played through the same rounds as real ones.

For machines that are not at hand (many cores, several processors, other counters) and for asking whether what a
calibration claims is true. Only tests use them: no command does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from recbulc.tsc_probe.rounds import FlagRounds, HandoffRounds, RaceRounds, Stamps, Tester

Times = npt.NDArray[np.float64]

ROUND_TICKS = 3_000.0  # from one round to the next


@dataclass(frozen=True)
class SimulatedClock:
    """One core's counter: at true time t (in ticks) it stands at offset + t × (1 + drift)."""

    offset_ticks: float = 0.0
    drift_ppm: float = 0.0


@dataclass(frozen=True)
class Counters:
    """What all counters share: their step, whether a second read within a step returns previous + 1, their width."""

    granule_ticks: int = 1
    bumps: bool = False
    width_bits: int = 64


@dataclass
class SimulatedProber:
    """A machine of simulated cores.

    A line takes `transfer_ticks` from one core to another (more between cores of different `package_of`), plus an
    exponential `noise_ticks`; a share `disturbed` of the rounds meets an interrupt. `asymmetry_ticks` is added to every
    transfer towards the higher core, which no statistics can see.
    """

    clocks: Mapping[int, SimulatedClock]
    counters: Counters = field(default_factory=Counters)
    transfer_ticks: float = 100.0
    noise_ticks: float = 8.0
    read_ticks: float = 30.0
    disturbed: float = 0.0
    asymmetry_ticks: float = 0.0
    package_of: Mapping[int, int] = field(default_factory=dict)
    seed: int = 0
    now: float = 0.0

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)

    def true_skew(self, x: int, y: int, at: float | None = None) -> float:
        """TS_y − TS_x of ideal counters at one instant (default: now)."""
        t = self.now if at is None else at
        there, here = (self._ideal(core, np.array([t])) for core in (y, x))
        return float(there[0] - here[0])

    def reading(self, core: int, times: Times) -> Stamps:
        """What one core's counter says at successive times."""
        g = self.counters.granule_ticks
        steps = np.floor(self._ideal(core, times) / g).astype(np.int64)
        ticks = steps * g
        if self.counters.bumps:
            new_step = np.concatenate([[True], steps[1:] != steps[:-1]])
            since = np.arange(steps.size) - np.maximum.accumulate(np.where(new_step, np.arange(steps.size), 0))
            ticks = ticks + np.minimum(since, 1)
        mask = np.uint64((1 << self.counters.width_bits) - 1)
        return ticks.view(np.uint64) & mask

    def race(self, pair: tuple[int, int], tester: Tester, rounds: int) -> RaceRounds:
        """Fig. 4: two writes in random relative position, each between two reads."""
        starts = self._starts(rounds) + self.read_ticks
        issued0, issued1 = starts + self._random.uniform(0, 2 * self.transfer_ticks, (2, rounds))
        # a write is visible (GV) once its line has come, and the later one not before the line has come over again
        visible0, visible1 = np.stack([issued0, issued1]) + self._random.uniform(0, self.transfer_ticks, (2, rounds))
        zero_first = visible0 < visible1
        visible1 = np.where(zero_first, np.maximum(visible1, visible0 + self._transfer(pair, rounds)), visible1)
        visible0 = np.where(zero_first, visible0, np.maximum(visible0, visible1 + self._transfer(pair[::-1], rounds)))
        # the bare forms read their second clock without waiting for that
        done0, done1 = (visible0, visible1) if tester.sound else (issued0, issued1)
        read = self._random.uniform(1, self.read_ticks, (4, rounds))
        before0, after0 = self._twice(pair[0], issued0 - read[0], done0 + read[1])
        before1, after1 = self._twice(pair[1], issued1 - read[2], done1 + read[3])
        first = np.where(zero_first, 0, 1).astype(np.uint8)
        return RaceRounds(before0, after0, before1, after1, first, np.zeros(rounds, dtype=np.bool_))

    def handoff(self, pair: tuple[int, int], rounds: int) -> HandoffRounds:
        """Ping-pong."""
        sent = self._starts(rounds)
        seen = sent + self._random.uniform(1, self.read_ticks, rounds) + self._transfer(pair, rounds)
        back = seen + self._random.uniform(1, self.read_ticks, rounds) + self._transfer(pair[::-1], rounds)
        stamps0 = self._twice(pair[0], sent, back)
        return HandoffRounds(stamps0[0], self.reading(pair[1], seen), stamps0[1], np.zeros(rounds, dtype=np.bool_))

    def flag(self, pair: tuple[int, int], trigger: int | None, rounds: int) -> FlagRounds:
        """Fig. 6: the flag reaches one worker first, the other a transfer later."""
        released = self._starts(rounds)
        if trigger is None:
            who = (np.arange(rounds) % 2).astype(np.uint8)
            lag0 = np.where(who == 0, 0.0, self._transfer(pair[::-1], rounds))
            lag1 = np.where(who == 1, 0.0, self._transfer(pair, rounds))
        else:
            who = np.full(rounds, 2, dtype=np.uint8)
            nearer = self._transfer_time((trigger, pair[0])) - self._transfer_time((trigger, pair[1]))
            zero_first = self._random.uniform(-1, 1, rounds) * self.transfer_ticks > nearer
            reached = self._transfer((trigger, pair[0]), rounds)
            lag0 = np.where(zero_first, reached, reached + self._transfer(pair[::-1], rounds))
            lag1 = np.where(zero_first, reached + self._transfer(pair, rounds), reached)
        loop = self._random.uniform(0, 4, (2, rounds))
        late = self._random.random((2, rounds)) < self.disturbed
        interrupt = np.where(late, self._random.uniform(5_000, 50_000, (2, rounds)), 0.0)
        ts0 = self.reading(pair[0], released + lag0 + loop[0] + interrupt[0])
        ts1 = self.reading(pair[1], released + lag1 + loop[1] + interrupt[1])
        return FlagRounds(ts0, ts1, who, np.zeros(rounds, dtype=np.bool_))

    def readings(self, core: int, count: int) -> Stamps:
        """Consecutive readings with varied gaps."""
        times = self.now + np.cumsum(self._random.uniform(10, 1300, count))
        self.now = float(times[-1])
        return self.reading(core, times)

    def counter_and_clock(self, core: int) -> tuple[int, int]:
        """A counter of 1 GHz: one tick of true time is one nanosecond."""
        return int(self.reading(core, np.array([self.now]))[0]), int(self.now)

    def now_ns(self) -> int:
        """True time."""
        return int(self.now)

    def idle(self, seconds: float) -> None:
        """Nothing happens."""
        self.now += seconds * 1e9

    def _ideal(self, core: int, times: Times) -> Times:
        clock = self.clocks[core]
        return clock.offset_ticks + times * (1 + clock.drift_ppm * 1e-6)

    def _starts(self, rounds: int) -> Times:
        gaps = self._random.uniform(0.5, 1.5, rounds) * ROUND_TICKS
        starts = self.now + np.cumsum(gaps)
        self.now = float(starts[-1]) + ROUND_TICKS
        return starts

    def _twice(self, core: int, one: Times, two: Times) -> tuple[Stamps, Stamps]:
        """Two reads per round, taken by one core in turn."""
        both = self.reading(core, np.column_stack([one, two]).ravel()).reshape(-1, 2)
        return both[:, 0].copy(), both[:, 1].copy()

    def _transfer_time(self, way: tuple[int, int]) -> float:
        far = self.package_of.get(way[0], 0) != self.package_of.get(way[1], 0)
        return self.transfer_ticks * (2.5 if far else 1.0) + (self.asymmetry_ticks if way[1] > way[0] else 0.0)

    def _transfer(self, way: tuple[int, int], rounds: int) -> Times:
        return self._transfer_time(way) + self._random.exponential(self.noise_ticks, rounds)
