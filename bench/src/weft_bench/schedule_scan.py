"""Joint execution: one scan of a synopsis from young to old answers every window on the way (section 2.2)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import accumulate, islice
from typing import Any, TypeVar

from weft.model import WeftError
from weft.schedule.periodic import Periodic, Question
from weft_bench.schedule_synopsis import Intervals

P = TypeVar("P")

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
