"""Memory for values that percentiles, distinct counts and modes keep: an upper bound, and sketches that need less.

A value is kept once per tree, for any number of queries and overlapping windows. Each query adds it once to its
sliding window and removes it once. Exact aggregates keep the values of all rows, with or without sharing; they are sent
once per feed. There is one sketch per slice and group, and it does not shrink when slices are combined, so finer slices
have more samples: see `optimizer.cost.seconds` for the cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

from weft.aggregates import AGGREGATES, Component, components, keeps_values
from weft.model import Call
from weft.plan.format import call as written
from weft.plan.format import duration
from weft.plan.logical import Plan

POINT = 16
"""Bytes of a value and its count; strings take their length in addition."""


@dataclass(frozen=True, slots=True)
class Synopsis:
    """The values that a tree keeps for one component."""

    feed: int
    tree: int
    calls: tuple[Call, ...]
    component: Component
    length: int
    """The longest window over it, in microseconds."""
    readers: int
    """Aggregates of queries that read it."""
    slices: float
    """Slices per second of the feed, each with a partial for every group."""
    groups: float
    """An upper bound: 1 without keys, infinite with keys."""

    @property
    def points(self) -> int | None:
        """Most values of a sketch per group and slice; None: exact aggregates have no limit."""
        return self.component.points

    def values(self, rate: float, groups: float | None = None) -> float:
        """Values per second: one per row if all differ, or the capacity of the sketches of all groups."""
        groups = self.groups if groups is None else min(groups, self.groups)
        return rate if self.points is None else min(rate, self.points * self.slices * groups)

    def bytes(self, rate: float, groups: float | None = None) -> float:
        """An upper bound, for the longest window."""
        return POINT * self.values(rate, groups) * self.length / 1_000_000

    def moves(self, rate: float, groups: float | None = None) -> float:
        """Values that enter and leave windows, per second, for all queries."""
        return 2 * self.values(rate, groups) * self.readers


def synopses(plan: Plan) -> Iterator[Synopsis]:
    """Synopses in the order of trees."""
    feeds = sorted((tree, number) for number, feed in enumerate(plan.feeds) for tree in feed.trees)
    for tree, number in feeds:
        users_by_component: dict[Component, list[tuple[Call, int]]] = {}
        for query in (plan.workload.by_name[name] for name in plan.trees[tree].queries):
            for call in query.calls:
                if keeps_values(call):
                    (component,) = components([call], {})
                    users_by_component.setdefault(component, []).append((call, query.window.length))
        feed = plan.feeds[number]
        for component, users in users_by_component.items():
            calls, longest = tuple(dict.fromkeys(call for call, _ in users)), max(length for _, length in users)
            groups = inf if feed.keys else 1.0
            yield Synopsis(number, tree, calls, component, longest, len(users), float(feed.edge_rate), groups)


def explain_synopses(plan: Plan) -> list[str]:
    """One line per synopsis."""
    lines, rate = [], float(plan.rate)
    for each in synopses(plan):
        bound = "" if each.points is None else f", and {size(POINT * each.points)} per group and slice"
        lines.append(
            f"  values of {written(each.calls[0])}  tree {each.tree + 1}  at most {size(each.bytes(rate))} "
            f"for {duration(each.length)}{bound}   {each.moves(rate):,.0f} moves/s"
        )
    return lines


def warn_of_synopses(plan: Plan, limit: int | None) -> list[str]:
    """If all synopses together may exceed the limit: the bound, and sketches that fit."""
    kept, rate = list(synopses(plan)), float(plan.rate)
    most = sum(each.bytes(rate) for each in kept)
    if limit is None or most <= limit:
        return []
    lines = [f"  warning  values may take {size(most)}, above the limit of {size(limit)}; the job would stop there"]
    forms = dict.fromkeys(filter(None, (_smaller(each, call, rate, limit) for each in kept for call in each.calls)))
    return [*lines, f"    sketches have a fixed size: use {', '.join(forms)}"] if forms else lines


def _smaller(synopsis: Synopsis, call: Call, rate: float, limit: int) -> str | None:
    """The finest sketch that fits, or else the smallest, with its size; None: no sketch is smaller."""
    for form in (forms := AGGREGATES[call.function].approximations(call)):
        (component,) = components([form], {})
        takes = replace(synopsis, component=component).bytes(rate, groups=1)
        if takes <= limit or form is forms[-1]:
            return f"{written(form)} ({size(takes)} per group at most)" if takes < synopsis.bytes(rate) else None
    return None


def size(count: float) -> str:
    """
    >>> size(512), size(3 * 2**20)
    ('512 B', '3.0 MiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:,.0f} B" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1024
    raise AssertionError("the loop ends with the last unit")
