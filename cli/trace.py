"""Show a recording: its header, its threads and their events.

Threads are named by creation: 0 is the first, 0.2 the second that it created.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from rich.markup import escape
from rich.table import Table

from recbulc.cli.console import Speaker, add_common, speaker_of
from recbulc.cli.program import verdict_of
from recbulc.errors import InputError
from recbulc.recorders.events import Flag, Input, Kind
from recbulc.recorders.trace import Trace, kind_name

HAS_OBJECT = frozenset(
    kind for kind in Kind if kind in {Kind.READ, Kind.WRITE, Kind.RMW} or Kind.MALLOC <= kind < Kind.CREATE
) | frozenset(kind for kind in Kind if Kind.MUTEX_LOCK <= kind < Kind.INPUT)


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_common(parser)
    parser.add_argument("trace", type=Path, metavar="DIR", help="the recording")
    parser.add_argument("--thread", metavar="T", help="only this one's events, by number or name")
    parser.add_argument("--limit", type=int, default=100, metavar="N", help="at most N events (default %(default)s)")
    parser.epilog = "example:\n  recbulc trace bug.trace --thread 0.1 --limit 20"


def run(args: argparse.Namespace) -> int:
    """Exit 0 when shown."""
    speaker = speaker_of(args)
    if args.limit < 0:
        raise InputError(f"--limit {args.limit}", "give 0 or more")
    trace = Trace.load(args.trace)
    chosen = _chosen(trace, args.thread)
    rows = first_events(trace, chosen, args.limit)
    events = [describe_event(trace, number, row) for number, row in rows]
    speaker.document({"header": _header(trace), "threads": _threads(trace), "events": events})
    _show(speaker, trace, events)
    more = sum(len(trace.events[number]) for number in chosen) - len(events)
    if more:
        speaker.note(f"{more} more events; --limit shows them")
    return 0


def _chosen(trace: Trace, wanted: str | None) -> list[int]:
    if wanted is None:
        return list(range(len(trace.threads)))
    for thread in trace.threads:
        if wanted in {thread.name, str(thread.number)}:
            return [thread.number]
    names = ", ".join(thread.name for thread in trace.threads)
    raise InputError(f"there is no thread {wanted} in {trace.path}", f"choose of {names}")


def first_events(trace: Trace, threads: list[int], limit: int) -> list[tuple[int, int]]:
    """(thread, index) of the first events by stamp: close to the order in which they happened, proof of nothing."""
    heads = [trace.events[number]["before"][:limit] for number in threads]
    if not heads:
        return []
    owners = np.repeat(threads, [len(head) for head in heads])
    rows = np.concatenate([np.arange(len(head)) for head in heads])
    order = np.argsort(np.concatenate(heads), kind="stable")[:limit]
    return [(int(owners[at]), int(rows[at])) for at in order]


def describe_event(trace: Trace, number: int, row: int) -> dict[str, Any]:
    """One event as a JSON document has it."""
    event = trace.events[number][row]
    kind = int(event["kind"])
    site = trace.location(event)
    place = trace.object_name(event) if kind in HAS_OBJECT else None
    described: dict[str, Any] = {
        "thread": trace.threads[number].name,
        "index": row,
        "kind": kind_name(kind),
        "before": int(event["before"]),
        "after": int(event["after"]) or None,
        "core": int(event["core"]),
        "where": f"{site.file}:{site.line}" if site else None,
        "function": site.function if site else None,
        "object": str(place) if place else (hex(event["object"]) if kind in HAS_OBJECT else None),
        "size": int(event["size"]),
        "value": int(event["value"]),
        "old": int(event["old"]),
        "flags": [flag.name for flag in Flag if event["flags"] & flag],
    }
    if kind == Kind.INPUT:
        described["object"] = Input(int(event["object"])).name.lower()
    return described


def _header(trace: Trace) -> dict[str, Any]:
    header: dict[str, Any] = msgspec.to_builtins(trace.meta)
    return header | {"verdict": verdict_of(trace.meta.verdict)}


def _threads(trace: Trace) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(thread) for thread in trace.threads]


def _show(speaker: Speaker, trace: Trace, events: list[dict[str, Any]]) -> None:
    meta = trace.meta
    verdict = meta.verdict
    speaker.show(f"program   {escape(' '.join(meta.argv))}  (run {meta.run}, seed {meta.seed}, {meta.strategy})")
    speaker.show(f"recorded  {meta.created}, level {meta.level}, stamp {meta.stamp}, cores {list(meta.cores)}")
    speaker.show(f"verdict   {verdict.how}" + (f": {escape(verdict.detail)}" if verdict.detail else ""))
    for pair in meta.clocks.pairs:
        bounds = f"sound [{pair.sound.lo}, {pair.sound.hi}], confident [{pair.confident.lo}, {pair.confident.hi}]"
        changed = "  CHANGED: orders nothing" if meta.clocks.modified else ""
        speaker.show(
            f"clocks    {pair.cores[0]} → {pair.cores[1]}: {bounds}{changed}",
        )
    threads = Table("thread", "core", "events", "end", box=None)
    for thread in trace.threads:
        site = trace.sites.get(thread.blocked.call) if thread.blocked else None
        at = f" in {thread.blocked.kind}" + (f" at {site.file}:{site.line}" if site else "") if thread.blocked else ""
        lost = ", rest lost" if thread.lost else ""
        threads.add_row(thread.name, str(thread.core), str(thread.events), escape(f"{thread.end}{at}{lost}"))
    speaker.show(threads)
    listed = Table("stamp", "thread", "event", "object", "value", "where", box=None)
    first = min((event["before"] for event in events), default=0)
    for event in events:
        listed.add_row(
            f"+{event['before'] - first}" + ("" if event["after"] else " (open)"),
            event["thread"],
            event["kind"].lower(),
            escape(event["object"] or ""),
            f"{event['old']} → {event['value']}" if event["kind"] == "RMW" else str(event["value"]),
            escape(event["where"] or ""),
        )
    speaker.show(listed)
