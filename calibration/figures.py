"""Pictures of clocks. Every function returns a figure; `save_figure` writes it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from recbulc.calibration.model import ClockModel
from recbulc.calibration.pair import UNSOUND_TESTERS, PairClock
from recbulc.calibration.scheme2 import differences, find_spikes, zero_was_first
from recbulc.calibration.stability import Sample
from recbulc.errors import InputError
from recbulc.tsc_probe.rounds import FlagRounds

SUFFIXES = {".png", ".svg", ".pdf"}
LABEL = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
FIRST, SECOND, PROVEN, STATISTICAL, FAINT = "#1b6ca8", "#c8553d", "#2a7f62", "#8d5fa8", "#9a9a9a"


def calibration_figure(model: ClockModel, rounds: FlagRounds) -> Figure:
    """The distribution of TS2 − TS1 (Fig. 7) and the intervals by tester (Table 5) of the first pair; with three or
    more cores also the map of all pairs.
    """
    many = len(model.cores) > 2
    figure = Figure(figsize=(15 if many else 11, 4.6), layout="constrained")
    axes = figure.subplots(1, 3 if many else 2)
    draw_distribution(axes[0], rounds, model)
    draw_testers(axes[1], model.pairs[0], model)
    if many:
        draw_core_map(axes[2], model)
    return figure


def draw_distribution(axes: Axes, rounds: FlagRounds, model: ClockModel) -> None:
    """Fig. 7: two spikes, one for each core that may have had the flag first; d lies in their middle."""
    x, y = model.pairs[0].cores
    diffs = differences(rounds, model.width_bits)
    first = zero_was_first(rounds, diffs)
    low, high = np.percentile(diffs, [0.2, 99.8])
    margin = max(4 * model.granule.ticks, (high - low) * 0.15)
    bins = np.arange(low - margin, high + margin + model.granule.ticks, max(model.granule.ticks, (high - low) / 80))
    axes.hist(diffs[first], bins=bins.tolist(), color=FIRST, label=f"core {x} had the flag first")
    axes.hist(diffs[~first], bins=bins.tolist(), color=SECOND, label=f"core {y} had the flag first")
    axes.axvline(model.pairs[0].d_ticks, color="black", linewidth=1, label=f"d = {model.pairs[0].d_ticks:+.1f} ticks")
    if not rounds.first_is_known:
        boundary = find_spikes(diffs).boundary
        axes.axvline(boundary, color=FAINT, linestyle=":", label=f"boundary {boundary:+.1f}")
    axes.set_title(f"TS{y} − TS{x} when both saw the flag")
    axes.set_xlabel("ticks")
    axes.set_ylabel(f"rounds of {diffs.size:,}")
    axes.set_ylim(top=axes.get_ylim()[1] * 1.25)
    axes.legend(fontsize="small", loc="upper center")


def draw_testers(axes: Axes, pair: PairClock, model: ClockModel) -> None:
    """Table 5 as bars: what each tester bounds, and what remains of all of them."""
    rows = [
        (name, (bound.lo, bound.hi), PROVEN)
        for name, bound in pair.testers.items()
        if name not in UNSOUND_TESTERS and bound.bounded
    ]
    rows.append(("sound", (pair.sound.lo, pair.sound.hi), PROVEN))
    rows.append((f"confident\n{pair.confidence:g}", (pair.confident.lo, pair.confident.hi), STATISTICAL))
    ends = [end for _, interval, _ in rows for end in interval]
    sound_reach = max(abs(end - pair.d_ticks) for end in rows[-2][1])
    reach = min(4 * sound_reach, max(abs(end - pair.d_ticks) for end in ends))
    for position, (_, (lo, hi), colour) in enumerate(rows):
        thick = position >= len(rows) - 2
        left, right = max(lo, pair.d_ticks - reach), min(hi, pair.d_ticks + reach)
        axes.barh(
            position, right - left, left=left, height=0.6 if thick else 0.35, color=colour, alpha=1 if thick else 0.55
        )
        label = f"[{lo}, {hi}]" + (" (cut)" if right - left < hi - lo - 1 else "")
        axes.text(pair.d_ticks, position - 0.44, label, ha="center", va="center", fontsize="x-small", bbox=LABEL)
    axes.set_ylim(-0.8, len(rows) - 0.4)
    axes.set_xlim(pair.d_ticks - 1.05 * reach, pair.d_ticks + 1.05 * reach)
    axes.axvline(pair.d_ticks, color="black", linewidth=1)
    axes.set_yticks(range(len(rows)), [name for name, _, _ in rows])
    axes.invert_yaxis()
    axes.set_xlabel(f"ticks of {1e9 / model.hz:.3f} ns")
    axes.set_title(f"TS{pair.cores[1]} − TS{pair.cores[0]}: bounds by tester")


def draw_core_map(axes: Axes, model: ClockModel) -> None:
    """Core × core: the estimated skew as colour, the width of the sound interval as text."""
    cores = model.cores
    skew: npt.NDArray[np.float64] = np.full((len(cores), len(cores)), np.nan)
    reach = max(abs(pair.d_ticks) for pair in model.pairs) or 1.0
    for pair in model.pairs:
        i, j = cores.index(pair.cores[0]), cores.index(pair.cores[1])
        skew[i, j], skew[j, i] = pair.d_ticks, -pair.d_ticks
        if len(cores) <= 16:
            for row, column in ((i, j), (j, i)):
                colour = "white" if abs(pair.d_ticks) > 0.6 * reach else "black"
                label = str(pair.sound.width)
                axes.text(column, row, label, ha="center", va="center", fontsize="x-small", color=colour)
    np.fill_diagonal(skew, 0)
    image = axes.imshow(skew, cmap="RdBu_r", vmin=-reach, vmax=reach)
    axes.figure.colorbar(image, ax=axes, label="d = TS(column) − TS(row), ticks", shrink=0.8)
    step = max(1, len(cores) // 16)
    ticks = list(range(0, len(cores), step))
    axes.set_xticks(ticks, [str(cores[k]) for k in ticks])
    axes.set_yticks(ticks, [str(cores[k]) for k in ticks])
    axes.set_title("skew of all pairs" + (" (numbers: width of sound)" if len(cores) <= 16 else ""))


def stability_figure(samples: list[Sample], granule_ticks: int) -> Figure:
    """Fig. 15: d of every window with its interval, and d accumulated since the beginning; one panel per pair."""
    pairs = sorted({(sample.x, sample.y) for sample in samples})
    figure = Figure(figsize=(10, 3.8 * len(pairs)), layout="constrained")
    panels = figure.subplots(len(pairs), 1, squeeze=False)
    longest = max(sample.t for sample in samples)
    unit, name = next(
        (u, n)
        for u, n in ((86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))
        if longest >= 3 * u or u == 1
    )
    for axes, pair in zip(panels[:, 0], pairs, strict=True):
        mine = [sample for sample in samples if (sample.x, sample.y) == pair]
        t = np.array([sample.t for sample in mine]) / unit
        d, lo, hi, accumulated = (
            np.array([getattr(sample, field) for sample in mine]) for field in ("d", "lo", "hi", "acc_d")
        )
        axes.errorbar(t, d, yerr=(d - lo, hi - d), fmt="o", ms=3, color=FIRST, ecolor=FAINT, lw=0.8, label="window")
        axes.plot(t, accumulated, color=SECOND, label="accumulated")
        middle, reach = float(np.median(d)), float(max(np.ptp(d), granule_ticks / 2))
        axes.set_ylim(min(middle, d.min()) - reach, max(middle, d.max()) + reach)
        axes.set_title(f"skew of the cores {pair[0]} → {pair[1]} over time")
        axes.set_xlabel(name)
        axes.set_ylabel("d, ticks")
        axes.legend(loc="upper right")
    return figure


def check_figure_path(path: Path) -> None:
    """Say before the work, not after it, that a picture cannot be written."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: unknown kind of picture", f"end the name with one of {', '.join(sorted(SUFFIXES))}")
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} is no directory", "create it, or choose another place for the picture")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"cannot write {path}", "choose another place for the picture")


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure; the suffix says in which format."""
    try:
        figure.savefig(path, dpi=130)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}", "choose another place") from error
