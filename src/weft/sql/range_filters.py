"""Filters that ask where one column lies: a number says between which of their limits a row is, and so which it passes.

`price > 500` implies `price > 100`, and `price BETWEEN 200 AND 300` is told by the same comparisons: the limits of all
are put in order, and each filter is an interval of places in that order. Only what no type of the column can change is
put in order: comparisons with numbers of one kind, so short that every type of numbers tells them apart.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, cached_property
from itertools import accumulate, count

from weft.sql.canonical import canonical
from weft.sql.filters import conjuncts
from weft.sql.refuse import Source
from weft.sql.syntax import Node, Unreadable, read
from weft.sql.tokens import tokenize

_INTEGER, _DECIMAL = re.compile(r"-?\d{1,7}"), re.compile(r"-?\d{1,9}\.\d{1,6}")
"""A float distinguishes integers of 7 digits, and a double decimals of 15."""

Limit = tuple[Decimal, bool, str]
"""A number, whether a value must be beyond it to pass (not on it), and how it is written."""

Interval = tuple[int, int]
"""The least and the most limits that a row passes."""


@dataclass(frozen=True)
class Range:
    """Filters on one column, behind the same guard. A filter that is of no such kind is a range by itself."""

    key: tuple[str, ...]
    """What the filters have in common: the column and its guard, or the whole text."""
    guards: tuple[str, ...]
    """What a row passes before it is compared."""
    tests: tuple[str, ...]
    """From the lowest limit to the highest: each implies the one before it."""
    intervals: Mapping[str, Interval]
    """By filter."""

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """For how many tests a row passes: 0 where no filter wants it, else numbers from 1 in the same order."""
        change = [0] * (len(self.tests) + 2)
        for least, most in set(self.intervals.values()):
            if least <= most:
                change[least] += 1
                change[most + 1] -= 1
        number = count(1)
        return tuple(next(number) if open_ else 0 for open_ in list(accumulate(change))[:-1])

    @property
    def nulls_pass(self) -> bool:
        """Whether a value that no test says anything about would be taken for one below all limits."""
        return self.numbers[0] > 0

    def bounds(self, filter_: str) -> Interval:
        """The numbers of rows that pass; none where the least is above the most."""
        least, most = self.intervals[filter_]
        return (self.numbers[least], self.numbers[most]) if least <= most else (1, 0)

    def numbers_of(self, finer: Range) -> list[int]:
        """The number of a row here, by its number in a range that has these filters and more."""
        places = [finer.tests.index(test) for test in self.tests]
        coarser = [0] * (1 + max(finer.numbers))
        for passed, number in enumerate(finer.numbers):
            if number:
                coarser[number] = self.numbers[bisect_left(places, passed)]
        return coarser


def ranges(filters: Sequence[str]) -> list[Range]:
    """Each filter in one of them.

    >>> [(r.tests, r.numbers) for r in ranges(["a > 5", "kind = 'a'", "a > 1", "a BETWEEN 2 AND 3"])]
    [(('a > 1', 'a >= 2', 'a > 3', 'a > 5'), (0, 1, 2, 3, 4)), (("kind = 'a'",), (0, 1))]
    """
    by_range: dict[tuple[str, ...], list[tuple[str, _Asked]]] = {}
    for text in filters:
        key, asked = _asked(text)
        by_range.setdefault(key, []).append((text, asked))
    return [_range(key, members) for key, members in by_range.items()]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a filter asks of its column: to pass all lower limits and none of the upper ones."""

    column: str
    guards: tuple[str, ...]
    lower: tuple[Limit, ...]
    upper: tuple[Limit, ...]


def _range(key: tuple[str, ...], members: Sequence[tuple[str, _Asked]]) -> Range:
    column, guards = members[0][1].column, members[0][1].guards
    if not column:
        return Range(key, (), (members[0][0],), {members[0][0]: (1, 1)})
    written = {limit[:2]: limit[2] for _, asked in members for limit in (*asked.lower, *asked.upper)}
    order = {limit: place for place, limit in enumerate(sorted(written))}
    tests = tuple(f"{column} {'>' if beyond else '>='} {written[number, beyond]}" for number, beyond in order)
    intervals = {
        text: (
            max((order[limit[:2]] + 1 for limit in asked.lower), default=0),
            min((order[limit[:2]] for limit in asked.upper), default=len(order)),
        )
        for text, asked in members
    }
    return Range(key, guards, tests, intervals)


@cache
def _asked(text: str) -> tuple[tuple[str, ...], _Asked]:
    """What the filters of its range have in common, and what is its own."""
    alone = (text,), _Asked("", (), (), ())
    try:
        parts = conjuncts(read(tokenize(Source(text))))
    except Unreadable:
        return alone
    turns = [_turn(part) for part in parts]
    last = turns[-1]
    if last is None:
        return alone
    # Spark reads conjuncts from left to right, and an earlier one may guard a later one: what comes before stays there.
    first = len(turns)
    while first and (turn := turns[first - 1]) is not None and turn[:2] == last[:2]:
        first -= 1
    own = [turn for turn in turns[first:] if turn is not None]
    guards = tuple(f"({canonical(part.tokens)})" for part in parts[:first])
    asked = _Asked(
        last[0],
        guards,
        tuple(limit for _, _, lower, _ in own for limit in lower),
        tuple(limit for _, _, _, upper in own for limit in upper),
    )
    return (*last[:2], *guards), asked


def _turn(node: Node) -> tuple[str, str, tuple[Limit, ...], tuple[Limit, ...]] | None:
    """The column, the kind of numbers, and the lower and upper limits of a comparison."""
    if node.kind != "op" or node.name not in ("gt", "ge", "lt", "le", "between") or node.args[0].kind != "column":
        return None
    column, *literals = (canonical(arg.tokens) for arg in node.args)
    if all(map(_INTEGER.fullmatch, literals)):
        kind = "integer"
    elif all(map(_DECIMAL.fullmatch, literals)):
        kind = "decimal"
    else:
        return None
    limits = [(Decimal(literal), literal) for literal in literals]
    if node.name == "between":
        (low, low_text), (high, high_text) = limits
        return column, kind, ((low, False, low_text),), ((high, True, high_text),)
    ((number, literal),) = limits
    limit = (number, node.name in ("gt", "le"), literal)
    return (column, kind, (limit,), ()) if node.name in ("gt", "ge") else (column, kind, (), (limit,))
