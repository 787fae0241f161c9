"""Find the sites of a schedule in another build of the program: a fix, another compiler, one line more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from recbulc.errors import InputError
from recbulc.recorders.runner import Launch, find_program
from recbulc.recorders.sitetable import load_site_table
from recbulc.replay.compile import ACCESSES, has_place
from recbulc.replay.divergence import Locate
from recbulc.schedule import Op, Schedule, Site

Key = tuple[str, str, str]  # function, kind, name of the file
FAR_LINES = 500


@dataclass(frozen=True)
class Rebuilt:
    """Another program for a schedule; `numbers` are its sites' by index in Schedule.sites, where they are found."""

    launch: Launch
    numbers: Mapping[int, int]
    locate: Locate


@dataclass(frozen=True)
class Lacking:
    """An operation of the schedule whose site the other program does not have: the first in the total order."""

    thread: str
    position: int
    op: Op


def rebuilt(schedule: Schedule, launch: Launch, there: Sequence[Site]) -> Rebuilt:
    """A schedule's sites in the program of `launch`, whose sites are `there`."""
    by_number = {site.number: site for site in there}
    return Rebuilt(launch, match_sites(schedule.sites, there), by_number.get)


def find_rebuilt(schedule: Schedule, command_line: Sequence[str]) -> Rebuilt:
    """The program that a command line names, in the recorded environment; the sites are those of its own file.

    Without arguments it gets the recorded ones.
    """
    cwd = Path.cwd()
    program = find_program(command_line[0], cwd)
    table = load_site_table(program)
    if not len(table) and any(site.kind.startswith("BEFORE_") for site in schedule.sites):
        raise InputError(
            f"{program} was not built by `recbulc cc`: no place of the schedule can be found in it",
            "build it with CC='recbulc cc' CXX='recbulc c++', and the options of the recorded build",
        )
    argv = (command_line[0], *(command_line[1:] or schedule.argv[1:]))
    launch = Launch(program, argv, schedule.env, cwd, schedule.stdin)
    return rebuilt(schedule, launch, [table.schedule_site(number) for number in range(1, len(table) + 1)])


def first_lacking(schedule: Schedule, numbers: Mapping[int, int]) -> Lacking | None:
    """The first operation that cannot be made there."""
    lacking = [
        (op.order, number, position)
        for number, thread in enumerate(schedule.threads)
        for position, op in enumerate(thread.ops)
        if (op.kind in ACCESSES or has_place(op)) and op.site not in numbers
    ]
    if not lacking:
        return None
    _, number, position = min(lacking)
    thread = schedule.threads[number]
    return Lacking(thread.name, position, thread.ops[position])


def match_sites(recorded: Sequence[Site], there: Iterable[Site]) -> dict[int, int]:
    """Index in `recorded` → number of the same site there.

    Candidates are of one function, file and kind; they are aligned in source order, so that lines which a fix has put
    in or taken out move what stands below them. A site that has changed its line and its column is another one.
    """
    recorded_by_key: dict[Key, list[int]] = defaultdict(list)
    for index, site in enumerate(recorded):
        recorded_by_key[_key(site)].append(index)
    there_by_key: dict[Key, list[Site]] = defaultdict(list)
    for site in there:
        there_by_key[_key(site)].append(site)
    found: dict[int, int] = {}
    for key, indices in recorded_by_key.items():
        indices.sort(key=lambda index: _place(recorded[index]))
        others = sorted(there_by_key.get(key, []), key=_place)
        for a, b in _align([recorded[index] for index in indices], others):
            found[indices[a]] = others[b].number
    return found


def _align(ours: Sequence[Site], others: Sequence[Site]) -> list[tuple[int, int]]:
    """The best pairs in order (Needleman–Wunsch without a cost for gaps)."""
    best = [[0] * (len(others) + 1) for _ in range(len(ours) + 1)]
    for a in range(len(ours) - 1, -1, -1):
        for b in range(len(others) - 1, -1, -1):
            likeness = _likeness(ours[a], others[b])
            pair = likeness + best[a + 1][b + 1] if likeness else 0
            best[a][b] = max(pair, best[a + 1][b], best[a][b + 1])
    pairs = []
    a = b = 0
    while a < len(ours) and b < len(others):
        likeness = _likeness(ours[a], others[b])
        if likeness and best[a][b] == likeness + best[a + 1][b + 1]:
            pairs.append((a, b))
            a, b = a + 1, b + 1
        elif best[a][b] == best[a + 1][b]:
            a += 1
        else:
            b += 1
    return pairs


def _likeness(ours: Site, other: Site) -> int:
    """0: not the same site; else the more the better, one more pair counting for more than a better one."""
    if ours.line != other.line and ours.column != other.column:
        return 0
    away = min(abs(ours.line - other.line), FAR_LINES)
    return 2 * FAR_LINES - away + 100 * (ours.ordinal == other.ordinal) + 50 * (ours.column == other.column)


def _key(site: Site) -> Key:
    return site.function, site.kind, Path(site.file).name


def _place(site: Site) -> tuple[int, int, int]:
    return site.line, site.column, site.ordinal
