"""Paper 4 as printed: synopses with one partial per interval (section 2.1), and one scan for all windows (2.2)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, islice
from math import gcd
from typing import Any, Generic, TypeVar

from weft.model import WeftError, Window
from weft.schedule.periodic import Periodic, Question

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


Combine = Callable[[P, P], P]
"""`combine(older, newer)`."""


class NotCovered(WeftError):
    """A window is longer than what its synopsis holds so far."""


def scan(young_to_old: Iterable[P], windows: Collection[int], combine: Combine[P]) -> dict[int, P]:
    """The aggregates of the youngest `w` partials, for each window `w`; the longest one decides what it costs.

    >>> scan([7, 3, 8], {1, 2}, lambda older, newer: max(older, newer))
    {1: 7, 2: 7}
    """
    wanted = set(windows)
    found: dict[int, P] = {}
    longest, read = max(wanted, default=0), 0
    wholes = accumulate(islice(young_to_old, longest), lambda newer, older: combine(older, newer))
    for read, whole in enumerate(wholes, 1):
        if read in wanted:
            found[read] = whole
    if read < longest:
        raise NotCovered(
            f"a window of {longest} intervals is asked for and {read} are there; ask {longest - read} updates later"
        )
    return found


def execute(
    queries: Iterable[Periodic],
    kept: Mapping[str, Intervals[Any]],
    combines: Mapping[str, Combine[Any]],
    finish: Mapping[str, Callable[..., Any]],
) -> dict[str, Any]:
    """The answers by query name: each synopsis is scanned once, each question answered once.

    `finish[asks]` makes an answer of the aggregates of what a query reads, in its order: `avg` divides a sum by a
    count, a union combines the parts.
    """
    queries = list(queries)
    lengths: dict[str, set[int]] = {}
    for query in queries:
        for kind in query.reads:
            lengths.setdefault(kind, set()).add(query.window)
    read = {kind: scan(kept[kind], windows, combines[kind]) for kind, windows in lengths.items()}
    answers: dict[Question, Any] = {}
    for query in queries:
        if query.question not in answers:
            answers[query.question] = finish[query.asks](*(read[kind][query.window] for kind in query.reads))
    return {query.name: answers[query.question] for query in queries}


def common_interval(windows: Iterable[Window]) -> int:
    """The longest interval that serves all of them.

    >>> common_interval([Window(600, 120), Window(840, 180)])
    60
    """
    return gcd(*(length for w in windows for length in (w.length, w.slide)))
