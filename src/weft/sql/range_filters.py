"""Range filters on one column: one number per row says between which limits it lies, and so which filters it passes.

`price > 500` implies `price > 100`, and `price BETWEEN 200 AND 300` needs comparisons of the same kind. The limits of
all filters are sorted, and each filter is an interval of positions in that order. Only limits whose order is the same
for every column type are sorted: numbers of one kind, short enough that every numeric type distinguishes them.
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
from weft.sql.syntax import read
from weft.sql.syntax_tree import Node, Unreadable
from weft.sql.tokens import tokenize

_INTEGER, _DECIMAL = re.compile(r"-?\d{1,7}"), re.compile(r"-?\d{1,9}\.\d{1,6}")
"""A float distinguishes integers of 7 digits, and a double decimals of 15."""

Limit = tuple[Decimal, bool, str]
"""A number, whether a value must be strictly greater to pass, and the text of the number."""

Interval = tuple[int, int]
"""The least and the greatest number of tests that a row must pass."""


@dataclass(frozen=True)
class Range:
    """Filters on one column, behind the same guard. Any other filter is a range of its own."""

    key: tuple[str, ...]
    """What the filters have in common: the column and its guards, or the text of the filter."""
    guards: tuple[str, ...]
    """Conditions that a row must pass before it is compared."""
    tests: tuple[str, ...]
    """From the lowest limit to the highest: each implies the one before it."""
    intervals: Mapping[str, Interval]
    """By filter."""

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """A number for each count of passed tests: 0 if no filter passes the row, otherwise ascending from 1."""
        change = [0] * (len(self.tests) + 2)
        for least, most in set(self.intervals.values()):
            if least <= most:
                change[least] += 1
                change[most + 1] -= 1
        number = count(1)
        return tuple(next(number) if open_ else 0 for open_ in list(accumulate(change))[:-1])

    @property
    def nulls_pass(self) -> bool:
        """Whether null, which passes no test, would be treated as a value below all limits."""
        return self.numbers[0] > 0

    def bounds(self, filter_: str) -> Interval:
        """The least and the greatest number of rows that pass; none pass if the least is above the greatest."""
        least, most = self.intervals[filter_]
        return (self.numbers[least], self.numbers[most]) if least <= most else (1, 0)

    def numbers_of(self, finer: Range) -> list[int]:
        """For each number of a range that has these filters and more: the number of such a row here."""
        positions = [finer.tests.index(test) for test in self.tests]
        coarser = [0] * (1 + max(finer.numbers))
        for passed, number in enumerate(finer.numbers):
            if number:
                coarser[number] = self.numbers[bisect_left(positions, passed)]
        return coarser


def ranges(filters: Sequence[str]) -> list[Range]:
    """The filters, each in one range.

    >>> [(r.tests, r.numbers) for r in ranges(["a > 5", "kind = 'a'", "a > 1", "a BETWEEN 2 AND 3"])]
    [(('a > 1', 'a >= 2', 'a > 3', 'a > 5'), (0, 1, 2, 3, 4)), (("kind = 'a'",), (0, 1))]
    """
    by_range: dict[tuple[str, ...], list[tuple[str, _Limits]]] = {}
    for text in filters:
        key, limits = _limits_of(text)
        by_range.setdefault(key, []).append((text, limits))
    return [_range(key, members) for key, members in by_range.items()]


@dataclass(frozen=True, slots=True)
class _Limits:
    """The limits of a filter: a row must pass all lower ones and none of the upper ones."""

    column: str
    guards: tuple[str, ...]
    lower: tuple[Limit, ...]
    upper: tuple[Limit, ...]


def _range(key: tuple[str, ...], members: Sequence[tuple[str, _Limits]]) -> Range:
    column, guards = members[0][1].column, members[0][1].guards
    if not column:
        return Range(key, (), (members[0][0],), {members[0][0]: (1, 1)})
    written = {limit[:2]: limit[2] for _, limits in members for limit in (*limits.lower, *limits.upper)}
    order = {limit: place for place, limit in enumerate(sorted(written))}
    tests = tuple(f"{column} {'>' if beyond else '>='} {written[number, beyond]}" for number, beyond in order)
    intervals = {
        text: (
            max((order[limit[:2]] + 1 for limit in limits.lower), default=0),
            min((order[limit[:2]] for limit in limits.upper), default=len(order)),
        )
        for text, limits in members
    }
    return Range(key, guards, tests, intervals)


@cache
def _limits_of(text: str) -> tuple[tuple[str, ...], _Limits]:
    """The key of the filter's range, and the limits of the filter."""
    alone = (text,), _Limits("", (), (), ())
    try:
        parts = conjuncts(read(tokenize(Source(text))))
    except Unreadable:
        return alone
    comparisons = [_comparison(part) for part in parts]
    last = comparisons[-1]
    if last is None:
        return alone
    # Spark evaluates conjuncts from left to right, and an earlier one may guard a later one: the order is kept.
    first = len(comparisons)
    while first and (comparison := comparisons[first - 1]) is not None and comparison[:2] == last[:2]:
        first -= 1
    own = [comparison for comparison in comparisons[first:] if comparison is not None]
    guards = tuple(f"({canonical(part.tokens)})" for part in parts[:first])
    limits = _Limits(
        last[0],
        guards,
        tuple(limit for _, _, lower, _ in own for limit in lower),
        tuple(limit for _, _, _, upper in own for limit in upper),
    )
    return (*last[:2], *guards), limits


def _comparison(node: Node) -> tuple[str, str, tuple[Limit, ...], tuple[Limit, ...]] | None:
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
    numbers = [(Decimal(literal), literal) for literal in literals]
    if node.name == "between":
        (low, low_text), (high, high_text) = numbers
        return column, kind, ((low, False, low_text),), ((high, True, high_text),)
    ((number, literal),) = numbers
    limit = (number, node.name in ("gt", "le"), literal)
    return (column, kind, (limit,), ()) if node.name in ("gt", "ge") else (column, kind, (), (limit,))
