"""Signatures as native Spark expressions: which of some filters a row passes.

Filters that ask where one column lies are one number, of the place between their limits; any other filter is a number
of one bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    """Some query wants rows whatever filter they pass."""

    @classmethod
    def union(cls, signatures: Iterable[Signature]) -> Signature:
        found = tuple(signatures)
        return cls(tuple(sorted({f for s in found for f in s.filters})), any(s.all_rows for s in found))

    @cached_property
    def ranges(self) -> tuple[Range, ...]:
        """None where all rows that are wanted pass the only filter."""
        return () if len(self.filters) == 1 and not self.all_rows else tuple(ranges(self.filters))

    @cached_property
    def _places(self) -> dict[tuple[str, ...], tuple[int, int, int]]:
        """Word, shift and mask of each range's number, by its key."""
        found = {}
        word, shift = 0, 0
        for each in self.ranges:
            width = max(each.numbers).bit_length()
            if shift + width > WORD_BITS:
                word, shift = word + 1, 0
            found[each.key] = word, shift, (1 << width) - 1
            shift += width
        return found

    @cached_property
    def bits(self) -> dict[str, FilterBit]:
        """The place of each filter."""
        return {f: FilterBit(*self._places[each.key], *each.bounds(f)) for each in self.ranges for f in each.intervals}

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"w{word}" for word in range(1 + max((word for word, _, _ in self._places.values()), default=-1)))

    @property
    def width(self) -> int:
        """Bits that its numbers take."""
        return sum(mask.bit_length() for _, _, mask in self._places.values())

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns that its words are computed in, beside those of the rows: the same words, the same column."""
        return tuple(f"signature_{sha256(word.encode()).hexdigest()[:16]}" for word in self.words)

    @property
    def passes(self) -> str | None:
        """Whether some query wants a row, by the computed words; None: each is wanted."""
        if self.all_rows:
            return None
        return _any(self.names) if self.ranges else f"({self.filters[0]})"

    @cached_property
    def words(self) -> list[str]:
        found: list[list[str]] = [[] for _ in self.columns]
        for each in self.ranges:
            word, shift, _ = self._places[each.key]
            number = _number(each.tests, [number << shift for number in each.numbers])
            guards = [*each.guards, *([f"({each.tests[0]}) IS NOT NULL"] if each.nulls_pass else [])]
            guarded = f"CASE WHEN {' AND '.join(guards)} THEN {number} ELSE 0L END" if guards else number
            found[word].append(f"({guarded})")
        return [" | ".join(word) for word in found]

    def words_of(self, finer: Signature) -> list[str]:
        """The same from the words of a signature that has these filters and more.

        >>> Signature(("b",), True).words_of(Signature(("a", "b"), True))
        ['(CASE WHEN w0 & 2L >= 2L THEN 1L ELSE 0L END)']
        """
        if self.bits == finer.bits:
            return list(self.columns)
        found: list[list[str]] = [[] for _ in self.columns]
        known = {each.key: each for each in finer.ranges}
        for each in self.ranges:
            word, shift, _ = self._places[each.key]
            from_word, from_shift, mask = finer._places[each.key]
            numbers = each.numbers_of(known[each.key])
            steps = [n for n in range(1, len(numbers)) if numbers[n] != numbers[n - 1]]
            tests = [f"w{from_word} & {mask << from_shift}L >= {n << from_shift}L" for n in steps]
            values = [numbers[n] << shift for n in (0, *steps)]
            found[word].append(f"({_number(tests, values)})")
        return [" | ".join(word) for word in found]

    def passes_of(self, finer: Signature) -> str | None:
        """Whether some query wants a row, from the words of the finer one; None: each row that it wants is wanted."""
        if self.all_rows or (self.filters == finer.filters and not finer.all_rows):
            return None
        if self.ranges:
            return _any(f"({word})" for word in self.words_of(finer))
        bit = finer.bits[self.filters[0]]
        place = f"w{bit.word} & {bit.mask << bit.shift}L"
        return f"{place} BETWEEN {bit.least << bit.shift}L AND {bit.most << bit.shift}L"


def _any(words: Iterable[str]) -> str:
    return " OR ".join(f"{word} != 0L" for word in words)


def _number(tests: Sequence[str], values: Sequence[int]) -> str:
    """The value for as many tests as hold, of which each implies the one before it: by halves, as in a sorted list."""
    if not tests:
        return f"{values[0]}L"
    middle = len(tests) // 2
    more = _number(tests[middle + 1 :], values[middle + 1 :])
    return f"CASE WHEN {tests[middle]} THEN {more} ELSE {_number(tests[:middle], values[: middle + 1])} END"
