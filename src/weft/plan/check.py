"""The last check of a finished plan; changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from fractions import Fraction
from itertools import chain

from weft.model import EdgeClass, PlanError
from weft.plan.logical import Plan

FEW = 4
"""Up to this number of classes, searching a tuple is faster than a set."""


class PlanRejected(PlanError):
    """A plan that would lose answers or count rows twice: a mistake of the optimizer, not of the user."""


def check_plan(plan: Plan) -> None:
    """Raise `PlanRejected` with everything that is wrong."""
    # The later checks need the queries and trees that the first ones have checked.
    for look in (_queries, _feeds, _groupings, _edges, _costs):
        problems = list(look(plan))
        if problems:
            raise PlanRejected(f"this {plan.strategy} plan cannot run: {'; '.join(problems)}")


def _queries(plan: Plan) -> Iterator[str]:
    names = set(chain.from_iterable(tree.queries for tree in plan.trees))
    if len(names) == sum(len(tree.queries) for tree in plan.trees) and names == plan.workload.by_name.keys():
        yield from (f"tree {number} has no query" for number, tree in enumerate(plan.trees, 1) if not tree.queries)
        return
    placed = Counter(chain.from_iterable(tree.queries for tree in plan.trees))
    yield from (f"query {q.name} is in no tree" for q in plan.workload if q.name not in placed)
    yield from (f"query {name} is in {count} trees" for name, count in placed.items() if count > 1)
    yield from (
        f"a tree has {name}, which is not in the workload" for name in placed if name not in plan.workload.by_name
    )
    yield from (f"tree {number} has no query" for number, tree in enumerate(plan.trees, 1) if not tree.queries)


def _feeds(plan: Plan) -> Iterator[str]:
    fed = Counter(tree for feed in plan.feeds for tree in feed.trees)
    for tree in range(len(plan.trees)):
        if fed[tree] != 1:
            yield f"tree {tree + 1} is in {fed[tree] or 'no'} feed{'s' if fed[tree] > 1 else ''}"
    yield from (f"a feed has tree {tree + 1}, which is not there" for tree in fed if not 0 <= tree < len(plan.trees))
    yield from (f"feed {number} has no tree" for number, feed in enumerate(plan.feeds, 1) if not feed.trees)


def _groupings(plan: Plan) -> Iterator[str]:
    by_name = plan.workload.by_name
    different = {(q.source, q.event_time, q.keys) for q in plan.workload}
    if len(different) == 1 and all(feed.keys == plan.workload[0].keys for feed in plan.feeds):
        return
    for number, feed in enumerate(plan.feeds, 1):
        first = by_name[plan.trees[feed.trees[0]].queries[0]]
        source, event_time = first.source, first.event_time
        for name in (name for tree in feed.trees for name in plan.trees[tree].queries):
            query = by_name[name]
            if query.keys != feed.keys or query.source != source or query.event_time != event_time:
                yield f"query {name} is not grouped as feed {number} is"


def _edges(plan: Plan) -> Iterator[str]:
    by_name = plan.workload.by_name
    for number, tree in enumerate(plan.trees, 1):
        edges = tree.edges.classes
        classes: Collection[EdgeClass] = edges if len(edges) <= FEW else frozenset(edges)
        cut: set[EdgeClass] = set()
        for name in tree.queries:
            window = by_name[name].window
            slide = window.slide
            begin = window.offset % slide
            for at in ((slide, begin), (slide, (begin + window.length) % slide)):
                if at in classes or at in cut:
                    continue
                if not any(slide % s == 0 and (s, at[1] % s) in classes for s in {s for s, _ in edges}):
                    yield f"windows of {name} begin or end within a slice of tree {number}"
                    break
                cut.add(at)
    for number, feed in enumerate(plan.feeds, 1):
        for index in feed.trees:
            own = plan.trees[index].edges
            if feed.edges is not own and feed.edges != own and not feed.edges.contains(own):
                yield f"slices of tree {index + 1} begin or end within a slice of feed {number}"


def _costs(plan: Plan) -> Iterator[str]:
    def negative(name: str, amount: Fraction, number: int | None = None) -> Iterator[str]:
        if amount < 0:
            yield f"{name}{'' if number is None else f' {number}'} is negative: {amount}"

    yield from negative("the rate", plan.rate)
    yield from negative("the cost", plan.cost)
    yield from negative("the unshared cost", plan.unshared)
    for number, tree in enumerate(plan.trees, 1):
        if tree.edge_rate.numerator < 0 or tree.omega.numerator < 0:
            yield from negative("the edge rate of tree", tree.edge_rate, number)
            yield from negative("omega of tree", tree.omega, number)
    for number, feed in enumerate(plan.feeds, 1):
        if feed.edge_rate.numerator < 0 or feed.fold_cost.numerator < 0:
            yield from negative("the edge rate of feed", feed.edge_rate, number)
            yield from negative("the fold cost of feed", feed.fold_cost, number)
