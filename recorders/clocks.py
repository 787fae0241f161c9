"""The clocks around a recording (ReCBuLC §3.2): a model, a short calibration before, one after, and their hull.

A guest's skew steps when its host moves its cores, so one model alone bounds nothing later. What was measured at both
ends and by the model together does, as far as moves go; a shift beyond what moves explain is a modified clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import combinations
from pathlib import Path

import msgspec

from recbulc.calibration.calibrate import CONFIDENCE, calibrate
from recbulc.calibration.change import compare_models
from recbulc.calibration.episode import Effort
from recbulc.calibration.interval import UNBOUNDED, Interval
from recbulc.calibration.model import ClockModel, default_path, load_model
from recbulc.calibration.pair import WANDER_GRANULES
from recbulc.errors import InputError, MachineError, RecbulcError
from recbulc.recorders.meta import PairSkew, TraceClocks, skews_of
from recbulc.tsc_probe.counter import Granule, measure_frequency_hz, measure_granule
from recbulc.tsc_probe.machine import Machine, read_machine
from recbulc.tsc_probe.native import NativeProber
from recbulc.tsc_probe.skew import Skews

SHORT = Effort(rounds=5_000)
MEASURING = "measuring the clocks (kept for later recordings)"
CHECKING = "checking the clocks"
CHECKING_AGAIN = "checking the clocks again"
CHECK_S = 3.0  # of a check, where none was made yet
ATTEMPTS = 3  # of a calibration during which a guest's cores were moved too far
MOST_CORES = 4  # of which all pairs are measured in a few seconds; more are used where asked for


class ClockWatch:
    """Measures the clocks of the cores that a recording uses."""

    def __init__(self, machine: Machine, skews: Skews, cores: tuple[int, ...]) -> None:
        self.cores = cores
        self._machine = machine
        self._skews = skews
        self._prober = NativeProber(skews)
        self._model: ClockModel | None = None
        self._before: ClockModel | None = None
        self.check_seconds = 0.0  # that one check of the clocks took, and the next will

    @classmethod
    def of_this_machine(cls, skews: Skews, wanted: tuple[int, ...] | None = None) -> ClockWatch:
        """With the cores asked for, or the first few that we may use; one core alone needs no skew."""
        machine = read_machine(Path(skews.root))
        machine.require_clock()
        usable = tuple(core for core in machine.allowed if core in machine.online)
        if wanted is None and len(usable) < 2:
            return cls(machine, skews, usable)
        return cls(machine, skews, machine.choose_cores(wanted if wanted else usable[:MOST_CORES]))

    def one_core(self) -> ClockWatch:
        """For runs whose stamps need not order anything across cores: nothing is measured."""
        return ClockWatch(self._machine, self._skews, self.cores[:1])

    def begin(self, note: Callable[[str], None] = lambda _: None) -> None:
        """Load the model, or measure one where there is none of this boot and these cores; then check the clocks."""
        if len(self.cores) < 2:
            return
        path = default_path(self._machine.identity)
        self._model = self._load(path)
        if self._model is not None:
            note(CHECKING)
            self._before = self._check()
            if not self._shifts(self._model, self._before):
                return
            note("the clocks have changed since the model was made")
        note(MEASURING)
        self._model = self._before = self._measure(Effort())
        self.check_seconds = self.check_seconds or CHECK_S
        if not self._skews.injected:
            self._model.save(path)

    def so_far(self) -> TraceClocks:
        """What is known before the recording has ended."""
        return self._clocks(None)

    def end(self, note: Callable[[str], None] = lambda _: None) -> TraceClocks:
        """Check the clocks again: the intervals that order the recording."""
        if len(self.cores) < 2:
            return self._clocks(None)
        note(CHECKING_AGAIN)
        return self._clocks(self._check())

    def unchecked(self) -> TraceClocks:
        """Nobody checked them again: as if they were modified, where there are several."""
        known = self._clocks(None)
        if len(self.cores) < 2:
            return known
        why = "they were not checked again after the recording"
        return msgspec.structs.replace(known, modified=True, why=why, pairs=_unbounded(known.pairs))

    def _check(self) -> ClockModel:
        began = time.monotonic()
        model = self._measure(SHORT)
        self.check_seconds = time.monotonic() - began
        return model

    def _load(self, path: Path) -> ClockModel | None:
        if self._skews.injected or not path.exists():
            return None
        try:
            model = load_model(path, self._machine.identity)
        except InputError:  # of another boot, or damaged: it is only a cache
            return None
        measured = {frozenset(pair.cores) for pair in model.pairs}
        return model if all(frozenset(pair) in measured for pair in combinations(self.cores, 2)) else None

    def _measure(self, effort: Effort) -> ClockModel:
        why: RecbulcError | None = None
        for _ in range(ATTEMPTS):
            try:
                return calibrate(
                    self._machine,
                    self._prober,
                    self.cores,
                    effort=effort,
                    width_bits=self._skews.width_bits,
                    injected=self._skews.injected,
                )
            except MachineError:
                raise
            except RecbulcError as error:
                why = error
        assert why is not None
        raise MachineError(f"no clock model is possible now: {why.what}", why.remedy) from why

    def _shifts(self, old: ClockModel, new: ClockModel) -> str:
        """By how much the clocks changed, where that is more than moving cores explain; "" where it is not."""
        change = compare_models(old, new, CONFIDENCE)
        moves = WANDER_GRANULES * new.granule.ticks if new.guest else 0
        shifted = [
            f"{pair.cores[0]} → {pair.cores[1]} by {pair.shift_ticks:+.0f} ticks"
            for pair in change.pairs
            if pair.changed and abs(pair.shift_ticks) > moves
        ]
        return ", ".join((["the machine was suspended"] if change.suspended else []) + shifted)

    def _clocks(self, after: ClockModel | None) -> TraceClocks:
        models = [model for model in (self._model, self._before, after) if model]
        if not models:
            granule, hz = self._one_counter
        else:
            granule, hz = models[-1].granule, models[-1].hz
        why = self._shifts(self._before, after) if self._before and after else ""
        pairs = [hull([_skew(model, pair) for model in models]) for pair in combinations(self.cores, 2)]
        return TraceClocks(
            hz=hz,
            granule=granule,
            width_bits=self._skews.width_bits,
            modified=bool(why),
            why=why,
            pairs=_unbounded(pairs) if why else tuple(pairs),
            model=self._of_cores(self._model),
            before=self._of_cores(self._before),
            after=self._of_cores(after),
            injected=self._skews if self._skews.injected else None,
        )

    @cached_property
    def _one_counter(self) -> tuple[Granule, float]:
        """Of a single core, which has no skew."""
        hz = measure_frequency_hz(self._prober, self.cores[0], self._skews.width_bits)
        return measure_granule(self._prober, self.cores), hz

    def _of_cores(self, model: ClockModel | None) -> tuple[PairSkew, ...]:
        if model is None:
            return ()
        return tuple(pair for pair in skews_of(model) if set(pair.cores) <= set(self.cores))


def _unbounded(pairs: Iterable[PairSkew]) -> tuple[PairSkew, ...]:
    return tuple(PairSkew(pair.cores, UNBOUNDED, UNBOUNDED) for pair in pairs)


def hull(pairs: Sequence[PairSkew]) -> PairSkew:
    """The narrowest intervals that hold all those of one pair of cores."""
    return PairSkew(pairs[0].cores, _hull(pair.sound for pair in pairs), _hull(pair.confident for pair in pairs))


def _hull(intervals: Iterable[Interval]) -> Interval:
    known = list(intervals)
    return Interval(min(interval.lo for interval in known), max(interval.hi for interval in known))


def _skew(model: ClockModel, cores: tuple[int, int]) -> PairSkew:
    return PairSkew(cores, model.interval(*cores, "sound"), model.interval(*cores, "confident"))
