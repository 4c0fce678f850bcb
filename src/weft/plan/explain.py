"""A plan as text and JSON: what is shared, what that costs, and which merge was the closest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any

from weft.model import ACQ
from weft.plan import format
from weft.plan.attribution import pass_cost, query_cost, query_costs
from weft.plan.html import to_html
from weft.plan.logical import Feed, Guarantee, Plan, Tree
from weft.plan.value_memory import explain_synopses

__all__ = ["explain", "query_cost", "query_costs", "to_html", "to_json"]


def explain(plan: Plan, limit: int | None = None) -> str:
    """The plan as text, with at most `limit` queries of each tree."""
    lines = [
        f"Plan  {plan.strategy}  cost {format.between(plan.cost, plan.cost_high)} ops/s  "
        f"unshared {format.amount(plan.unshared)}  "
        f"saves {format.saving(plan.cost_high or plan.cost, plan.unshared)}   rate {format.number(plan.rate)}/s"
    ]
    costs = query_costs(plan)
    for feed in plan.feeds:
        together = len(feed.trees) > 1 or feed.fold_cost > 0
        if together:
            by = f"   by {', '.join(feed.keys)}" if feed.keys else ""
            lines.append(
                f"  pass over rows for {_trees(feed.trees)}  {format.slices(feed.edge_rate, feed.edge_rate_high)}   "
                f"rows {format.amount(plan.rate)}   fold {format.amount(feed.fold_cost)}{by}"
            )
        for number in feed.trees:
            tree = plan.trees[number]
            rows = "" if together else f"   rows {format.amount(plan.rate)}"
            final = f"final {format.amount(tree.final_cost)}   {tree.technique}"
            lines.append(f"  tree {number + 1}  {format.slices(tree.edge_rate, tree.edge_rate_high)}{rows}   {final}")
            lines += _serving(plan, tree)
            lines += _queries(plan, tree, costs, limit)
    if plan.refused is not None:
        more = plan.refused.cost - plan.cost
        lines.append(
            f"  not merged  tree {plan.refused.left + 1} + tree {plan.refused.right + 1}: would cost "
            f"{format.amount(plan.refused.cost)} ({'+' if more >= 0 else '-'}{format.amount(abs(more))})"
        )
    if plan.seconds is not None:
        lines.append(f"  on this machine  {plan.seconds:.3g} s of work for each second of stream{_chosen(plan)}")
    lines += [f"  {word}  {sentence}" for word, sentence in format.guarantee(plan)]
    return "\n".join([*lines, *explain_synopses(plan)])


def _chosen(plan: Plan) -> str:
    if plan.seconds_of is None:
        return ""
    usual, compared = plan.seconds_of
    return f"; the least of {compared} plans, {usual:.3g} s without the choice"


def _trees(numbers: Sequence[int]) -> str:
    """
    >>> _trees((0, 1, 2, 5)), _trees((3,))
    ('trees 1-3, 6', 'tree 4')
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number:
            runs[-1][-1] = number + 1
        else:
            runs.append([number + 1, number + 1])
    spans = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
    return f"tree{'s' if len(numbers) > 1 else ''} {', '.join(spans)}"


def _serving(plan: Plan, tree: Tree) -> list[str]:
    """One line per operator: the technique that serves it, and its time and that of the next best."""
    by = "measured here" if plan.calibrated else "by weft's default speeds"
    lines = []
    for served in tree.serving:
        why = ""
        if served.nanoseconds is not None:
            why = f"   {served.nanoseconds:,.3g} ns per group and second"
        if served.next_nanoseconds is not None:
            why += f", {served.next_best} {served.next_nanoseconds:,.3g} ({by})"
        lines.append(f"    {format.operator(served.operator)} by {served.technique}{why}")
    return lines


def _queries(plan: Plan, tree: Tree, costs: dict[str, Fraction], limit: int | None) -> list[str]:
    """One line per query, in columns as wide as this tree needs."""
    names = tree.queries if limit is None else tree.queries[:limit]
    rows = []
    for name in names:
        query = plan.workload.by_name[name]
        window = query.shown
        rows.append(
            (
                name,
                format.calls(query),
                f"range {format.duration(window.length)}",
                f"slide {format.duration(window.slide)}",
                f"costs {format.amount(costs[name])}",
                format.extras(query),
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = []
    for row in rows:
        name, aggregates, length, slide, cost, extras = (cell.ljust(width) for cell, width in zip(row, widths))
        lines.append(f"    {name}  {aggregates}   {length}  {slide}   {cost}   {extras}".rstrip())
    if len(names) < len(tree.queries):
        lines.append(f"    ... and {len(tree.queries) - len(names)} more")
    return lines


def to_json(plan: Plan) -> dict[str, Any]:
    """The plan as JSON values: exact amounts as fractions in text, each with its float; trees numbered from 1."""
    costs = query_costs(plan)
    return {
        "strategy": plan.strategy,
        "technique": plan.technique,
        "seconds": plan.seconds,
        **({} if plan.seconds_of is None else {"seconds_by_operations": plan.seconds_of[0]}),
        "calibrated": plan.calibrated,
        **_exact("rate", plan.rate),
        **_exact("cost", plan.cost),
        **({} if plan.cost_high is None else _exact("cost_high", plan.cost_high)),
        **_exact("unshared", plan.unshared),
        "saves": float(1 - plan.cost / plan.unshared) if plan.unshared else 0.0,
        "feeds": [_feed(plan, feed) for feed in plan.feeds],
        "trees": [_tree(plan, number, tree, costs) for number, tree in enumerate(plan.trees, 1)],
        "refused": None
        if plan.refused is None
        else {
            "trees": [plan.refused.left + 1, plan.refused.right + 1],
            **_exact("cost", plan.refused.cost),
            **_exact("increase", plan.refused.cost - plan.cost),
        },
        "optimal": plan.optimal,
        "guarantee": None if plan.guarantee is None else _guarantee(plan.guarantee),
    }


def _feed(plan: Plan, feed: Feed) -> dict[str, Any]:
    return {
        "keys": list(feed.keys),
        "trees": [number + 1 for number in feed.trees],
        "edges": [list(edge_class) for edge_class in feed.edges.classes],
        **_exact("edge_rate", feed.edge_rate),
        **_exact("fold_cost", feed.fold_cost),
        **_exact("pass_cost", pass_cost(plan, feed)),
    }


def _tree(plan: Plan, number: int, tree: Tree, costs: dict[str, Fraction]) -> dict[str, Any]:
    return {
        "tree": number,
        "technique": tree.technique,
        "serving": [asdict(served) for served in tree.serving],
        "edges": [list(edge_class) for edge_class in tree.edges.classes],
        **_exact("edge_rate", tree.edge_rate),
        **({} if tree.edge_rate_high is None else _exact("edge_rate_high", tree.edge_rate_high)),
        **_exact("omega", tree.omega),
        **_exact("final_cost", tree.final_cost),
        "queries": [_query(plan.workload.by_name[name], costs[name]) for name in tree.queries],
    }


def _guarantee(guarantee: Guarantee) -> dict[str, Any]:
    return {
        "theorem_1": guarantee.theorem_1,
        "conditions": [
            {"asks": condition.asks, "holds": condition.problem is None, "problem": condition.problem}
            for condition in guarantee.conditions
        ],
        **_exact("share", guarantee.share),
    }


def _query(query: ACQ, cost: Fraction) -> dict[str, Any]:
    return {
        "name": query.name,
        "calls": [format.call(aggregate) for aggregate in query.calls],
        "range_us": query.shown.length,
        "slide_us": query.shown.slide,
        "offset_us": query.shown.offset,
        "refresh": query.refresh,
        **({} if query.requested_window is None else {"interval_us": query.window.slide}),
        "source": query.source,
        "event_time": query.event_time,
        "keys": list(query.keys),
        "where": query.where,
        **_exact("cost", cost),
    }


def _exact(name: str, value: Fraction) -> dict[str, Any]:
    return {name: float(value), f"{name}_exact": str(value)}
