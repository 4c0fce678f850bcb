"""Signatures as native Spark expressions: which of some filters a row passes, a bit each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from weft.engine.layout import FilterBit

WORD_BITS = 62
"""Bits of a signature in one bigint; the sign stays clear."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The different filters of some queries.

    >>> Signature(("a > 1", "b > 2")).words
    ['(CASE WHEN a > 1 THEN 1L ELSE 0L END) | (CASE WHEN b > 2 THEN 2L ELSE 0L END)']
    """

    filters: tuple[str, ...] = ()
    all_rows: bool = False
    """Some query wants rows whatever filter they pass."""

    @classmethod
    def union(cls, signatures: Iterable[Signature]) -> Signature:
        found = tuple(signatures)
        return cls(tuple(sorted({f for s in found for f in s.filters})), any(s.all_rows for s in found))

    @property
    def bits(self) -> dict[str, FilterBit]:
        """The word and bit of each filter; none where all rows that are wanted pass the only one."""
        if len(self.filters) == 1 and not self.all_rows:
            return {}
        return {f: divmod(place, WORD_BITS) for place, f in enumerate(self.filters)}

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"w{word}" for word in range(-(-len(self.bits) // WORD_BITS)))

    @property
    def passes(self) -> str | None:
        """Whether some query wants a row; None: each is wanted."""
        return None if self.all_rows else " OR ".join(f"({f})" for f in self.filters)

    @property
    def words(self) -> list[str]:
        return self._gather({f: f"CASE WHEN {f} THEN {1 << bit}L ELSE 0L END" for f, (_, bit) in self.bits.items()})

    def words_of(self, finer: Signature) -> list[str]:
        """The same from the words of a signature that has these filters and more.

        >>> Signature(("b",), True).words_of(Signature(("a", "b"), True))
        ['(shiftright(w0, 1) & 1L)']
        """
        if self.bits == finer.bits:
            return list(self.columns)
        places = finer.bits
        return self._gather(
            {f: _moved(f"w{places[f][0]}", places[f][1], bit) for f, (_, bit) in self.bits.items()}
        )

    def passes_of(self, finer: Signature) -> str | None:
        """The same from the words of the finer one; None: each row that it wants is wanted."""
        if self.all_rows or (self.filters == finer.filters and not finer.all_rows):
            return None
        masks: dict[int, int] = {}
        for f in self.filters:
            word, bit = finer.bits[f]
            masks[word] = masks.get(word, 0) | 1 << bit
        return " OR ".join(f"w{word} & {mask}L != 0" for word, mask in masks.items())

    def _gather(self, texts: dict[str, str]) -> list[str]:
        words: list[list[str]] = [[] for _ in self.columns]
        for f, (word, _) in self.bits.items():
            words[word].append(f"({texts[f]})")
        return [" | ".join(word) for word in words]


def _moved(word: str, place: int, bit: int) -> str:
    one = f"shiftright({word}, {place}) & 1L"
    return one if bit == 0 else f"shiftleft({one}, {bit})"
