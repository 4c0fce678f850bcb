"""What all strategies share: queries by grouping, and a plan from the trees of each grouping."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from weft.model import ACQ, Edges, Workload
from weft.optimizer.cost.operations import Cost, Statistics
from weft.optimizer.edge_counting import edge_rate_between
from weft.plan.logical import Feed, Plan, Tree

Strategy = Callable[[Workload, Statistics, Cost], Plan]

UNFOLDED = Fraction(0)

Positioned = tuple[int, ACQ]
"""A query with its position in the workload."""


@dataclass(frozen=True, slots=True)
class GroupingTrees:
    """The trees of one grouping, all fed from one composite slicing, or each with its own pass."""

    trees: tuple[Tree, ...]
    composite: bool = False


def groupings(workload: Workload) -> list[list[Positioned]]:
    """Only queries of one grouping can share a tree; groupings in the order of their first query."""
    members: dict[tuple[str, str, tuple[str, ...]], list[Positioned]] = {}
    for position, query in enumerate(workload):
        grouping = (query.source, query.event_time, query.keys)
        group = members.get(grouping)
        if group is None:
            group = members[grouping] = []
        group.append((position, query))
    return list(members.values())


def build(
    strategy: str,
    workload: Workload,
    statistics: Statistics,
    cost: Cost,
    sharings: Iterable[GroupingTrees],
    optimal: bool = False,
) -> Plan:
    """Number the trees by their first query, and price the plan."""
    sharings = list(sharings)
    first = {tree.queries[0]: tree for s in sharings for tree in s.trees}
    trees = tuple([first[query.name] for query in workload if query.name in first])
    number = {tree.queries[0]: i for i, tree in enumerate(trees)}

    def feed(fed: Sequence[Tree], composite: bool) -> Feed:
        keys = workload.by_name[fed[0].queries[0]].keys
        edges, rate, high = fed[0].edges, fed[0].edge_rate, fed[0].edge_rate_high
        if len(fed) > 1:
            edges = Edges.of_classes(c for tree in fed for c in tree.edges.classes)
            rate, most = edge_rate_between(edges)
            high = None if most == rate else most
        fold = len(fed) * rate if composite else UNFOLDED
        return Feed(keys, edges, rate, tuple(sorted(number[t.queries[0]] for t in fed)), fold, high)

    feeds: list[Feed] = []
    for s in sharings:
        feeds.extend([feed(s.trees, True)] if s.composite else [feed([tree], False) for tree in s.trees])
    feeds.sort(key=lambda f: f.trees[0])
    return Plan(
        workload=workload,
        strategy=strategy,
        technique=cost.technique.name,
        rate=statistics.rate,
        trees=trees,
        feeds=tuple(feeds),
        cost=cost.plan(trees, feeds, statistics),
        unshared=cost.unshared(workload, statistics),
        optimal=optimal,
        cost_high=_cost_high(trees, feeds, cost, statistics),
    )


def priced(plan: Plan, statistics: Statistics, cost: Cost) -> Plan:
    """The same trees at another rate."""
    return replace(
        plan,
        rate=statistics.rate,
        cost=cost.plan(plan.trees, plan.feeds, statistics),
        unshared=cost.unshared(plan.workload, statistics),
        cost_high=_cost_high(plan.trees, plan.feeds, cost, statistics),
    )


def _cost_high(trees: Sequence[Tree], feeds: Sequence[Feed], cost: Cost, statistics: Statistics) -> Fraction | None:
    """An upper bound of the cost; None where all edge rates are exact."""
    if all(t.edge_rate_high is None for t in trees) and all(f.edge_rate_high is None for f in feeds):
        return None
    highest = [replace(tree, edge_rate=tree.edge_rate_high or tree.edge_rate) for tree in trees]
    fed = []
    for feed in feeds:
        high = feed.edge_rate_high or feed.edge_rate
        fed.append(replace(feed, edge_rate=high, fold_cost=len(feed.trees) * high if feed.fold_cost else Fraction(0)))
    return cost.plan(highest, fed, statistics)
