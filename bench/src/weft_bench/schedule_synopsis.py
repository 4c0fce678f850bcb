"""Synopses: what is kept of a window, an interval at a time, for every query that reads it (section 2.1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from weft.schedule.periodic import Periodic

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Synopsis:
    """`length` intervals of `interval` microseconds, each with one partial of an aggregate."""

    kind: str
    interval: int
    length: int


def synopses_for(queries: Iterable[Periodic], interval: int) -> dict[str, Synopsis]:
    """One of each kind, as long as the longest window that reads it; whoever leaves takes nothing from the others.

    >>> synopses_for([Periodic("a", ("sum", "count"), 5, 1), Periodic("b", ("sum",), 9, 3)], 60)["sum"].length
    9
    """
    longest: dict[str, int] = {}
    for query in queries:
        for kind in query.reads:
            longest[kind] = max(longest.get(kind, 0), query.window)
    return {kind: Synopsis(kind, interval, length) for kind, length in longest.items()}


class Intervals(Generic[P]):
    """The partials of a synopsis, from young to old."""

    def __init__(self, synopsis: Synopsis) -> None:
        self.synopsis = synopsis
        self._partials: deque[P] = deque(maxlen=synopsis.length)

    def __iter__(self) -> Iterator[P]:
        return iter(self._partials)

    def __len__(self) -> int:
        return len(self._partials)

    def update(self, partial: P) -> None:
        """The window slides by one interval: the partial of the newest comes in, the oldest goes."""
        self._partials.appendleft(partial)

    def resize(self, synopsis: Synopsis) -> None:
        """A longer one keeps its oldest partials until it is full; a shorter one forgets them now."""
        self.synopsis = synopsis
        self._partials = deque(list(self._partials)[: synopsis.length], maxlen=synopsis.length)

    def updates_until(self, window: int) -> int:
        """After how many updates a window is covered; 0 where it is."""
        return max(0, window - len(self._partials))
