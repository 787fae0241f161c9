"""What is asked of a solver of constraints, in our own words: order variables, and facts over which comes before which.

Only `Before` speaks of order, and only positively: a fact never says that something is not before something else, so
that operations which came out at the same place may be taken in any order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

Where = tuple[int, int]  # thread, operation of its lane


@dataclass(frozen=True, slots=True)
class Before:
    """Variable `first` is smaller than variable `second`."""

    first: int
    second: int


@dataclass(frozen=True, slots=True)
class Chosen:
    """A free choice, or (`holds` off) its opposite."""

    number: int
    holds: bool = True


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part holds."""

    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Some part holds."""

    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class AtLeast:
    """So many of the parts hold."""

    count: int
    parts: tuple[Before, ...]


Term: TypeAlias = bool | Before | Chosen | AllOf | AnyOf | AtLeast


@dataclass(frozen=True, slots=True)
class Fact:
    """What must hold, and the operations that say so: one for a value or a result, two for a known order."""

    term: Term
    why: tuple[Where, ...]


@dataclass
class Query:
    """`operations` have the order variables 0, 1, ..., and `end` is one more: what is beyond it is left for later."""

    operations: list[Where]
    required: int = 0  # how many of the operations may not be left for later
    choices: int = 0
    facts: list[Fact] = field(default_factory=list)

    @property
    def end(self) -> int:
        """The variable of the end."""
        return len(self.operations)

    def choice(self) -> Chosen:
        """A new one."""
        self.choices += 1
        return Chosen(self.choices - 1)


def all_of(parts: Iterable[Term]) -> Term:
    """As short as it gets; True of nothing."""
    kept = []
    for part in parts:
        if part is False:
            return False
        if part is not True:
            kept.append(part)
    return True if not kept else kept[0] if len(kept) == 1 else AllOf(tuple(kept))


def any_of(parts: Iterable[Term]) -> Term:
    """As short as it gets; False of nothing."""
    kept = []
    for part in parts:
        if part is True:
            return True
        if part is not False:
            kept.append(part)
    return False if not kept else kept[0] if len(kept) == 1 else AnyOf(tuple(kept))


def at_least(count: int, parts: Iterable[bool | Before]) -> Term:
    """Of parts of which some are known."""
    open_ones = []
    for part in parts:
        if part is True:
            count -= 1
        elif part is not False:
            open_ones.append(part)
    if count <= 0:
        return True
    if count > len(open_ones):
        return False
    if count == len(open_ones):
        return all_of(open_ones)
    return any_of(open_ones) if count == 1 else AtLeast(count, tuple(open_ones))
