"""Which changes users may make, and how others are refused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from weft.engine import Layout
from weft.model import ACQ, RunError
from weft.plan import Plan
from weft.spark.queries.change import JoinMode

Since = Literal["now", "state", "source"]
"""What a query that joins sees."""


class CannotChange(RunError):
    """A change that is not possible: the job needs a query, names are unique, and a name keeps its columns."""


def refuse_after_end(ended: bool) -> None:
    if ended:
        raise CannotChange(
            "this job was drained: its stream has ended, and a query that joins would answer nothing; "
            "add it before, or start with an empty checkpoint folder"
        )


def refuse_existing(plan: Plan, queries: Iterable[ACQ]) -> None:
    for query in queries:
        if query.name in plan.workload.by_name:
            raise CannotChange(
                f"there is a query {query.name} already; give the new one another name, or replace the old one"
            )


def refuse_unknown(plan: Plan, names: Iterable[str]) -> None:
    for name in names:
        if name not in plan.workload.by_name:
            existing = ", ".join(list(plan.workload.by_name)[:10])
            raise CannotChange(f"there is no query {name}; there are {existing}")


def refuse_all(plan: Plan, names: Iterable[str]) -> None:
    if len(set(names)) == len(plan.workload):
        raise CannotChange("a job needs a query: stop it instead of dropping the last one")


def refuse_other_columns(layout: Layout, running: Layout, how: Mapping[str, JoinMode]) -> None:
    """Readers of the answers must find the same columns under the same name."""
    before = {q.name: q.schema for q in running.queries if how.get(q.name) == "instead"}
    for query in layout.queries:
        if query.name in before and not _alike(query.schema, before[query.name]):
            raise CannotChange(
                f"{query.name} answers {_columns(before[query.name])}, and its replacement "
                f"{_columns(query.schema)}; give the same columns, or drop it and add the other under another name"
            )


def only(layout: Layout, names: Collection[str]) -> Layout:
    """The layout with these queries alone."""
    return layout.with_trees(lambda tree: replace(tree, queries=tuple(q for q in tree.queries if q.name in names)))


def _alike(one: Any, other: Any) -> bool:
    return [(f.name, f.type) for f in one] == [(f.name, f.type) for f in other]


def _columns(schema: Any) -> str:
    return "(" + ", ".join(f"{f.name} {f.type}" for f in schema) + ")"
