"""The seeded queries of the comparison, and the order in which a sample of them is taken."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

AGGREGATES = ("sum(v)", "count(*)", "max(v)")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BenchQuery:
    """`overlap` windows cover each row, and one begins every `slide` seconds.

    >>> BenchQuery("q1", "sum(v)", slide=3, overlap=20).sql
    "SELECT k, window, sum(v) AS x FROM events GROUP BY k, window(ts, '60 seconds', '3 seconds')"
    """

    name: str
    aggregate: str
    slide: int
    overlap: int

    @property
    def range(self) -> int:
        return self.slide * self.overlap

    @property
    def sql(self) -> str:
        return (
            f"SELECT k, window, {self.aggregate} AS x FROM events "
            f"GROUP BY k, window(ts, '{self.range} seconds', '{self.slide} seconds')"
        )


def make_queries(count: int, seed: int) -> list[BenchQuery]:
    """Slides of 1 to 60 seconds, overlap 2 to 20. One query alone is always the one with overlap 20."""
    if count == 1:
        return [BenchQuery("q1", "sum(v)", slide=3, overlap=20)]
    draw = random.Random(seed)
    return [
        BenchQuery(f"q{i + 1}", AGGREGATES[i % len(AGGREGATES)], draw.randint(1, 60), draw.randint(2, 20))
        for i in range(count)
    ]


def sample_order(queries: Sequence[BenchQuery]) -> list[BenchQuery]:
    """An order of which every prefix covers the overlaps evenly: the cost of a query in plain Spark is its overlap."""
    return spread(sorted(queries, key=lambda q: (q.overlap, q.slide, q.name)))


def spread(items: Sequence[T]) -> list[T]:
    """The middle first, then the middles of what is left on both sides, level by level.

    >>> spread("abcdefg")
    ['d', 'b', 'f', 'a', 'c', 'e', 'g']
    """
    ordered: list[T] = []
    level = [(0, len(items))]
    while level:
        halves = []
        for begin, end in level:
            if begin < end:
                middle = (begin + end) // 2
                ordered.append(items[middle])
                halves += [(begin, middle), (middle + 1, end)]
        level = halves
    return ordered
