"""Signatures as native Spark expressions: which of some filters a row passes.

Filters that compare one column with limits share one number, the position of the value among the limits; any other
filter is a number of one bit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from weft.engine.layout import FilterBit
from weft.sql.range_filters import Range, ranges

WORD_BITS = 62
"""Bits of a signature in one bigint; the sign stays clear."""


@dataclass(frozen=True)
class Signature:
    """The different filters of some queries.

    >>> Signature(("a > 1", "b = 2")).words
    ['(CASE WHEN a > 1 THEN 1L ELSE 0L END) | (CASE WHEN b = 2 THEN 2L ELSE 0L END)']
    >>> Signature(("a > 1", "a > 2", "a > 3")).words
    ['(CASE WHEN a > 2 THEN CASE WHEN a > 3 THEN 3L ELSE 2L END ELSE CASE WHEN a > 1 THEN 1L ELSE 0L END END)']
    >>> Signature(("c AND a < 1",), all_rows=True).words
    ['(CASE WHEN (c) AND (a >= 1) IS NOT NULL THEN CASE WHEN a >= 1 THEN 0L ELSE 1L END ELSE 0L END)']
    """

    filters: tuple[str, ...] = ()
    all_rows: bool = False
    """Some query has no filter, and wants all rows."""

    @classmethod
    def union(cls, signatures: Iterable[Signature]) -> Signature:
        parts = tuple(signatures)
        return cls(tuple(sorted({f for part in parts for f in part.filters})), any(part.all_rows for part in parts))

    @cached_property
    def ranges(self) -> tuple[Range, ...]:
        """Empty if the signature has one filter, and only rows that pass it are wanted."""
        return () if len(self.filters) == 1 and not self.all_rows else tuple(ranges(self.filters))

    @cached_property
    def _positions(self) -> dict[tuple[str, ...], tuple[int, int, int]]:
        """Word, shift and mask of each range's number, by its key."""
        positions = {}
        word, shift = 0, 0
        for each in self.ranges:
            width = max(each.numbers).bit_length()
            if shift + width > WORD_BITS:
                word, shift = word + 1, 0
            positions[each.key] = word, shift, (1 << width) - 1
            shift += width
        return positions

    @cached_property
    def bits(self) -> dict[str, FilterBit]:
        """Where each filter is in the words."""
        position = self._positions
        return {f: FilterBit(*position[each.key], *each.bounds(f)) for each in self.ranges for f in each.intervals}

    @property
    def columns(self) -> tuple[str, ...]:
        words = 1 + max((word for word, _, _ in self._positions.values()), default=-1)
        return tuple(f"w{word}" for word in range(words))

    @property
    def width(self) -> int:
        """The number of bits of its numbers."""
        return sum(mask.bit_length() for _, _, mask in self._positions.values())

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns that its words are computed in, beside those of the rows: equal words have the same column."""
        return tuple(f"signature_{sha256(word.encode()).hexdigest()[:16]}" for word in self.words)

    @property
    def passes(self) -> str | None:
        """Whether some query wants a row, by the computed words; None: each is wanted."""
        if self.all_rows:
            return None
        return _any(self.names) if self.ranges else f"({self.filters[0]})"

    def passes_some(self, filters: Collection[str | None]) -> str | None:
        """Whether a row passes one of these filters, by the computed words; None: one of them takes every row.

        >>> Signature(("a", "b"), all_rows=True).passes_some(["b"])
        '(signature_276f657a845ba99b & 2L) BETWEEN 2L AND 2L'
        """
        if None in filters:
            return None
        if not self.all_rows and set(filters) == set(self.filters):
            return self.passes
        return " OR ".join(_between(self.names, self.bits[f]) for f in sorted(f for f in filters if f is not None))

    @cached_property
    def words(self) -> list[str]:
        terms: list[list[str]] = [[] for _ in self.columns]
        for each in self.ranges:
            word, shift, _ = self._positions[each.key]
            number = _number(each.tests, [number << shift for number in each.numbers])
            guards = [*each.guards, *([f"({each.tests[0]}) IS NOT NULL"] if each.nulls_pass else [])]
            guarded = f"CASE WHEN {' AND '.join(guards)} THEN {number} ELSE 0L END" if guards else number
            terms[word].append(f"({guarded})")
        return [" | ".join(of_word) for of_word in terms]

    def words_of(self, finer: Signature) -> list[str]:
        """The same from the words of a signature that has these filters and more.

        >>> Signature(("b",), True).words_of(Signature(("a", "b"), True))
        ['(CASE WHEN w0 & 2L >= 2L THEN 1L ELSE 0L END)']
        """
        if self.bits == finer.bits:
            return list(self.columns)
        terms: list[list[str]] = [[] for _ in self.columns]
        finer_ranges = {each.key: each for each in finer.ranges}
        for each in self.ranges:
            word, shift, _ = self._positions[each.key]
            from_word, from_shift, mask = finer._positions[each.key]
            numbers = each.numbers_of(finer_ranges[each.key])
            steps = [n for n in range(1, len(numbers)) if numbers[n] != numbers[n - 1]]
            tests = [f"w{from_word} & {mask << from_shift}L >= {n << from_shift}L" for n in steps]
            values = [numbers[n] << shift for n in (0, *steps)]
            terms[word].append(f"({_number(tests, values)})")
        return [" | ".join(of_word) for of_word in terms]

    def passes_of(self, finer: Signature) -> str | None:
        """Whether some query wants a row, from the words of the finer one; None: each row that it wants is wanted."""
        if self.all_rows or (self.filters == finer.filters and not finer.all_rows):
            return None
        if self.ranges:
            return _any(f"({word})" for word in self.words_of(finer))
        bit = finer.bits[self.filters[0]]
        number = f"w{bit.word} & {bit.mask << bit.shift}L"
        return f"{number} BETWEEN {bit.least << bit.shift}L AND {bit.most << bit.shift}L"


def _between(words: Sequence[str], bit: FilterBit) -> str:
    """Whether the number of a filter, in its word, is one of those that pass."""
    number = f"({words[bit.word]} & {bit.mask << bit.shift}L)"
    return f"{number} BETWEEN {bit.least << bit.shift}L AND {bit.most << bit.shift}L"


def _any(words: Iterable[str]) -> str:
    return " OR ".join(f"{word} != 0L" for word in words)


def _number(tests: Sequence[str], values: Sequence[int]) -> str:
    """The value for the number of tests that hold, found by binary search: each test implies the one before it."""
    if not tests:
        return f"{values[0]}L"
    middle = len(tests) // 2
    more = _number(tests[middle + 1 :], values[middle + 1 :])
    return f"CASE WHEN {tests[middle]} THEN {more} ELSE {_number(tests[:middle], values[: middle + 1])} END"
