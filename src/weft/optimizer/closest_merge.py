"""The closest merge that was not made: explains why the plan keeps its trees separate."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from weft.optimizer.cost.operations import Cost
from weft.optimizer.merge.greedy import Weaving
from weft.optimizer.merge.part import Merge, Part
from weft.optimizer.strategies.base import Positioned, groupings
from weft.plan.logical import Feed, Plan, Refusal

MOST_TREES = 10_000
"""With more trees the search is skipped: it would take longer than planning."""


def find_refused_merge(plan: Plan, cost: Cost) -> Plan:
    """The plan with a note of the two trees whose merge would raise the cost least, and its cost with that merge."""
    if len(plan.trees) > MOST_TREES:
        return plan
    tree_of = {name: number for number, tree in enumerate(plan.trees) for name in tree.queries}
    feed_of = {number: feed for feed in plan.feeds for number in feed.trees}
    best: Merge | None = None
    for group in groupings(plan.workload):
        members: dict[int, list[Positioned]] = {}
        for position, query in group:
            members.setdefault(tree_of[query.name], []).append((position, query))
        saving = _saving(feed_of[tree_of[group[0][1].name]], plan.rate)
        merge = Weaving(
            (Part.of_tree(queries, plan.trees[number], cost) for number, queries in members.items()), saving, cost
        ).best()
        if merge is not None and (best is None or merge.gain > best.gain):
            best = merge
    if best is None:
        return plan
    left, right = (tree_of[part.queries[0][1]] for part in (best.left, best.right))
    return replace(plan, refused=Refusal(left, right, plan.cost - best.gain))


def _saving(feed: Feed, rate: Fraction) -> Fraction:
    """What one tree less saves: a fold of the composite slices, or a pass where each tree has its own."""
    return feed.edge_rate if feed.fold_cost else rate
