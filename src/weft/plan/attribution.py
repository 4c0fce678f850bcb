"""The cost of a plan, divided among its passes and queries."""

from __future__ import annotations

from fractions import Fraction

from weft.model import ACQ
from weft.plan.logical import Feed, Plan, Tree


def query_costs(plan: Plan) -> dict[str, Fraction]:
    """The share of each query in `plan.cost`, in the order of the workload; the shares add up to `plan.cost`.

    A pass is shared equally by the queries that it feeds. Final operations are shared by overlap (range / slide) for
    Panes, where they grow with it, and equally for the other techniques, where they hardly grow.
    """
    costs: dict[str, Fraction] = {}
    for feed in plan.feeds:
        trees = [plan.trees[number] for number in feed.trees]
        share = pass_cost(plan, feed) / sum(len(tree.queries) for tree in trees)
        for tree in trees:
            weights = [_weight(tree, plan.workload.by_name[name]) for name in tree.queries]
            unit = tree.final_cost / sum(weights)
            for name, weight in zip(tree.queries, weights):
                costs[name] = share + unit * weight
    return {query.name: costs[query.name] for query in plan.workload}


def query_cost(plan: Plan, name: str) -> Fraction:
    """The cost of one query: its share of the final operations and of the pass that feeds it."""
    return query_costs(plan)[name]


def pass_cost(plan: Plan, feed: Feed) -> Fraction:
    """One operation per row, and the folds of its trees."""
    return plan.rate + feed.fold_cost


def _weight(tree: Tree, query: ACQ) -> Fraction:
    return Fraction(query.window.length, query.window.slide) if tree.technique == "panes" else Fraction(1)
