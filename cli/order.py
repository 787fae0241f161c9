"""What the stamps of a recording prove about its order, and what they leave open.

Program order, creation and joining and the sections of locks are counted in (ReCBuLC §3.3).
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from recbulc.cli.console import Speaker, add_common, speaker_of
from recbulc.ordering.events import recording_of
from recbulc.ordering.order import OrderReport, order
from recbulc.recorders.trace import Trace


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_common(parser)
    parser.add_argument("trace", type=Path, metavar="TRACE", help="the recording")
    parser.add_argument(
        "--interval",
        choices=("sound", "confident"),
        default="sound",
        help="which bounds of the clocks to go by (default %(default)s)",
    )
    parser.epilog = "example:\n  recbulc order bug.trace"


def run(args: argparse.Namespace) -> int:
    """Exit 0 when ordered; 1 where stamps and synchronisation contradict each other."""
    speaker = speaker_of(args)
    trace = Trace.load(args.trace)
    if trace.meta.clocks.modified:
        speaker.warn(f"the clocks changed while recording: stamps of different cores count as unordered "
                     f"({trace.meta.clocks.why})")  # fmt: skip
    report = order(recording_of(trace, args.interval))
    pairs = [{"sites": [_where(trace, site) for site in pair.sites], "count": pair.count} for pair in report.open_pairs]
    speaker.document(
        {
            "events": report.events,
            "conflicting_pairs": report.conflicting_pairs,
            "ordered": report.ordered,
            "unordered": report.unordered,
            "ordered_fraction": report.ordered_fraction,
            "seconds": report.seconds,
            "interval": args.interval,
            "open_pairs": pairs,
        }
    )
    _show(speaker, trace, report)
    return 0


def _where(trace: Trace, site: int) -> str:
    known = trace.sites.get(site)
    return f"{known.file}:{known.line}" if known else "?"


def _show(speaker: Speaker, trace: Trace, report: OrderReport) -> None:
    speaker.show(f"{report.events} events, {report.conflicting_pairs} conflicting pairs of accesses")
    speaker.show(f"{report.ordered} ordered ({report.ordered_fraction:.2%}), {report.unordered} open")
    if report.open_pairs:
        table = Table("times", "open between", "and", box=None)
        for pair in report.open_pairs:
            table.add_row(str(pair.count), *(escape(_where(trace, site)) for site in pair.sites))
        speaker.show(table)
