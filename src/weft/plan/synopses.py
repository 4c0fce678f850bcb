"""What a plan keeps of values: how much at most, and the sketch that would do with less.

A value that a window covers is kept once a tree, whatever the number of queries and of windows that overlap, and for
each query it is added once to a window that slides and taken away once. What it costs a query does not hang on who
shares its tree: it is told, and changes no choice between plans.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.aggregates import HOLISTIC, Component, components
from weft.model import Call
from weft.plan.text import call as written
from weft.plan.text import duration
from weft.plan.values import Plan

POINT = 16
"""Bytes of a value and how often it came; a text has its own length more."""

INSTEAD = {
    "count_distinct": "approx_count_distinct({0})",
    "percentile": "percentile_approx({0}, {1})",
    "median": "percentile_approx({0}, 0.5)",
    "mode": "approx_top_k({0}, 1)",
}
"""The approximate form of an exact aggregate."""


@dataclass(frozen=True, slots=True)
class Synopsis:
    """The values of one component that a tree keeps."""

    tree: int
    calls: tuple[Call, ...]
    component: Component
    length: int
    """The longest window over it, in microseconds."""
    bytes: float
    """At most: if no value came twice, at the plan's rate."""
    moves: float
    """Values that come into windows and leave them, a second, for all queries."""

    @property
    def limit(self) -> int | None:
        """Bytes that a sketch has for a group and slice, at most; None: an exact one has no limit."""
        setting, kind = self.component.setting, self.component.kind
        if kind == "theta":
            return POINT * 15 * (1 << setting) // 8
        if kind.startswith("kll_"):
            return POINT * 3 * setting
        return POINT * setting * 2 if kind.startswith("heavy_") else None


def synopses(plan: Plan) -> Iterator[Synopsis]:
    for number, tree in enumerate(plan.trees):
        queries = [plan.workload.by_name[name] for name in tree.queries]
        found: dict[Component, list[tuple[Call, int]]] = {}
        for query in queries:
            for call in query.calls:
                if call.function in HOLISTIC:
                    (component,) = components([call], {})
                    found.setdefault(component, []).append((call, query.window.length))
        for component, users in found.items():
            longest = max(length for _, length in users)
            values = float(plan.rate) * longest / 1_000_000
            calls = tuple(dict.fromkeys(call for call, _ in users))
            yield Synopsis(number, calls, component, longest, POINT * values, 2 * float(plan.rate) * len(users))


def explain_synopses(plan: Plan) -> list[str]:
    """A line for each."""
    lines = []
    for each in synopses(plan):
        bound = "" if each.limit is None else f", and {size(each.limit)} a group and slice"
        lines.append(
            f"  values of {written(each.calls[0])}  tree {each.tree + 1}  at most {size(each.bytes)} "
            f"for {duration(each.length)}{bound}   {each.moves:,.0f} moves/s"
        )
    return lines


def warn_of_synopses(plan: Plan, limit: int | None) -> list[str]:
    """Where together they may pass the limit: by how much, and what would fit."""
    found = list(synopses(plan))
    most = sum(each.bytes for each in found)
    if limit is None or most <= limit:
        return []
    lines = [f"  warning  values may take {size(most)}, above the limit of {size(limit)}; the job would stop there"]
    forms = dict.fromkeys(filter(None, (instead(call) for each in found for call in each.calls)))
    return [*lines, f"    sketches have a fixed size: use {', '.join(forms)}"] if forms else lines


def instead(call: Call) -> str | None:
    """What asks for nearly the same and fits.

    >>> instead(Call("percentile", ("price", "0.9"))), instead(Call("count_distinct", ("user",)))
    ('percentile_approx(price, 0.9)', 'approx_count_distinct(user)')
    """
    form = INSTEAD.get(call.function)
    return None if form is None else form.format(*call.arguments)


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
