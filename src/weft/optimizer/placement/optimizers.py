"""Which node runs which queries, and what they share there: the thirteen optimizers of the dissertation's table 7.

place(workload, [ClusterNode()] * 4, rate=100).maximum         # weft's own choice
place(workload, [ClusterNode()] * 4, rate=100, optimizer="wg_i")
fronts(workload, [ClusterNode()] * 4, rate=100)                 # what there is to choose from
place_groupings(workload, [ClusterNode()] * 4, rate=100)        # for queries that group by different keys too
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from random import Random

from weft.model import ACQ, PlanError, Workload
from weft.optimizer.cost.operations import Cost
from weft.optimizer.merge.part import Part, equal_edges
from weft.optimizer.placement.inserted import weave_inserted, weave_or_group_inserted
from weft.optimizer.placement.nodes import ClusterNode, Optimizer, Placement, PlacementPrices
from weft.optimizer.placement.pareto import front, knee
from weft.optimizer.placement.random_and_round_robin import group, in_turns, randomly, weave, weave_or_group
from weft.optimizer.placement.to_lowest import group_to_lowest, weave_or_group_to_lowest, weave_to_lowest
from weft.optimizer.placement.to_nodes import weave_then_group, weave_to_nodes
from weft.optimizer.strategies.base import groupings
from weft.plan.logical import Tree

OPTIMIZERS: Mapping[str, Optimizer] = {
    "g_rand": randomly(group),
    "w_rand": randomly(weave),
    "wg_rand": randomly(weave_or_group),
    "g_rr": in_turns(group),
    "w_rr": in_turns(weave),
    "wg_rr": in_turns(weave_or_group),
    "g_tl": group_to_lowest,
    "w_tl": weave_to_lowest,
    "wg_tl": weave_or_group_to_lowest,
    "w_tn": weave_to_nodes,
    "wg_tn": weave_then_group,
    "w_i": weave_inserted,
    "wg_i": weave_or_group_inserted,
}
"""By the names of table 7."""

TOGETHER = ("edges", "slides", "nothing")

SEED = 1


class CannotPlace(PlanError):
    """A workload or an optimizer that cannot be placed."""


def place(
    workload: Workload,
    nodes: Sequence[ClusterNode],
    rate: Fraction | int,
    optimizer: str = "knee",
    cost: Cost | None = None,
    together: str = "edges",
    seed: int = SEED,
) -> Placement:
    """One placement. `together` says which queries are one tree before anything is placed: those with the same `edges`,
    which never raises the total cost; those with the same `slides`, as in the dissertation; or `nothing`.
    """
    if optimizer == "knee":
        return knee(fronts(workload, nodes, rate, cost, together, seed))
    if optimizer not in OPTIMIZERS:
        raise CannotPlace(f"there is no optimizer {optimizer!r}; choose one of knee, {', '.join(OPTIMIZERS)}")
    parts, prices = _begin(workload, rate, cost, together)
    return OPTIMIZERS[optimizer](parts, nodes, prices, Random(seed)).placed(optimizer)


def fronts(
    workload: Workload,
    nodes: Sequence[ClusterNode],
    rate: Fraction | int,
    cost: Cost | None = None,
    together: str = "edges",
    seed: int = SEED,
) -> tuple[Placement, ...]:
    """The Pareto front of total and maximum cost, the least total first."""
    parts, prices = _begin(workload, rate, cost, together)
    return front(parts, nodes, prices, seed)


def place_groupings(
    workload: Workload,
    nodes: Sequence[ClusterNode],
    rate: Fraction | int,
    optimizer: str = "knee",
    cost: Cost | None = None,
) -> Placement:
    """Queries of different groupings share no tree, so each grouping is placed by itself. Nodes of equal capacity are
    interchangeable: the most expensive node of a grouping goes to the node that is least loaded so far.
    """
    trees: list[tuple[Tree, ...]] = [() for _ in nodes]
    costs = [Fraction(0) for _ in nodes]
    for queries in groupings(workload):
        placed = place(Workload(query for _, query in queries), nodes, rate, optimizer, cost)
        for capacity in {node.capacity for node in nodes}:
            alike = [n for n, node in enumerate(nodes) if node.capacity == capacity]
            most_expensive, least_loaded = (
                sorted(alike, key=lambda n: -placed.costs[n]),
                sorted(alike, key=lambda n: costs[n]),
            )
            for here, there in zip(most_expensive, least_loaded, strict=True):
                trees[there] += placed.trees[here]
                costs[there] += placed.costs[here]
    return Placement(optimizer, tuple(trees), tuple(costs), tuple(nodes))


def _begin(
    workload: Workload, rate: Fraction | int, cost: Cost | None, together: str
) -> tuple[list[Part], PlacementPrices]:
    if together not in TOGETHER:
        raise CannotPlace(f"queries can be put together by {', '.join(TOGETHER)}, not by {together!r}")
    grouped = groupings(workload)
    if len(grouped) != 1:
        raise CannotPlace(f"the queries have {len(grouped)} groupings, which cannot share trees; use place_groupings")
    prices = PlacementPrices(Fraction(rate), cost or Cost())
    return trees_of(grouped[0], prices.cost, together), prices


def trees_of(queries: Sequence[tuple[int, ACQ]], cost: Cost, together: str) -> list[Part]:
    """The trees before placement: queries that `together` joins, see `place`."""
    if together == "edges":
        return equal_edges(queries, cost)
    alike: dict[int, list[tuple[int, ACQ]]] = {}
    for position, query in queries:
        alike.setdefault(query.window.slide if together == "slides" else position, []).append((position, query))
    return [Part.of_tree(members, cost.tree([q for _, q in members]), cost) for members in alike.values()]
