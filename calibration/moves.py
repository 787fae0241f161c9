"""What a guest's moving cores have been seen to do to its clocks, from calibration to calibration of one boot.

One calibration sees few moves; how far they can take d is known only after many. So the values that d had between moves
are kept beside the default model, in the user's cache, and every new model gets those of its past (`PairClock.seen`).
They start anew with every boot, suspend, and change of the clocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import msgspec

from recbulc.calibration.change import ENOUGH_VALUES, LOOK_SECONDS, Look, joined, settle, sightings
from recbulc.calibration.model import ClockModel, default_path, write_whole
from recbulc.calibration.pair import STEP_TICKS, PairClock
from recbulc.tsc_probe.machine import SUSPEND_NOISE_NS, Identity

FORMAT = "recbulc-moves"
MOST_VALUES = 256  # per pair: the latest
WATCH_LOOKS = 4  # after a calibration, shared by all pairs, as long as it is not known what moves span


@dataclass(frozen=True)
class MoveHistory:
    """Values of d between moves, oldest first, by the pair's name `x,y`."""

    machine: Identity
    suspended_ns: int
    seen: dict[str, tuple[float, ...]] = field(default_factory=dict)
    format: str = FORMAT

    def save(self, path: Path) -> None:
        """Write the file whole or not at all."""
        write_whole(path, msgspec.json.encode(self))


def history_path(machine: Identity) -> Path:
    """Beside the default model of this machine and boot."""
    return default_path(machine).with_suffix(".moves.json")


def load_history(path: Path, machine: Identity, suspended_ns: int) -> MoveHistory:
    """What was seen so far; nothing where the file is missing, damaged or of another time: it is only a cache."""
    nothing = MoveHistory(machine, suspended_ns)
    try:
        history = msgspec.json.decode(path.read_bytes(), type=MoveHistory)
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return nothing
    slept = abs(history.suspended_ns - suspended_ns) > SUSPEND_NOISE_NS
    return nothing if slept or history.machine != machine or history.format != FORMAT else history


def recall(
    history: MoveHistory, model: ClockModel, confidence: float, look: Look, looks: int
) -> tuple[ClockModel, MoveHistory]:
    """The model with what was seen before it, and the history with what the model has seen.

    A pair whose clocks have changed since (doubtful shifts are looked at again, at most `looks` times) has no past.
    """
    pairs, seen = [], dict(history.seen)
    for pair in model.pairs:
        name = f"{pair.cores[0]},{pair.cores[1]}"
        past, watched = seen.get(name, ()), pair
        if len(past) < ENOUGH_VALUES:
            more = look(pair.cores, WATCH_LOOKS * LOOK_SECONDS / len(model.pairs))
            watched = replace(watched, stretches=joined(watched.stretches, more))
        if past:
            then = replace(sightings(pair), values=tuple((d, 1) for d in past))
            change, watched = settle(then, watched, model.granule.ticks, confidence, look, looks)
            past = () if change.changed else past
        seen[name] = remembered(past, watched)
        pairs.append(replace(pair, seen=seen[name]))
    return replace(model, pairs=tuple(pairs)), replace(history, seen=seen)


def remembered(past: Sequence[float], pair: PairClock) -> tuple[float, ...]:
    """The past and the pair's values of d; where d did not step in between, that is one value."""
    values = [*past, *(d for d, _ in sightings(pair).values)]
    moves = [d for before, d in pairwise(values) if abs(d - before) > STEP_TICKS]
    return tuple([values[0], *moves][-MOST_VALUES:])
