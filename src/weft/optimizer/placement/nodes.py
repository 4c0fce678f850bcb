"""Trees on nodes: the builder that optimizers fill, and the placement that they return."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from weft.model import PlanError
from weft.optimizer.cost.operations import Cost
from weft.optimizer.edge_counting import edge_rate_between
from weft.optimizer.merge.part import Part, union
from weft.plan.logical import Tree


class NoNodes(PlanError):
    """There is nothing to place trees on."""


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """`capacity` is the speed of the node, relative to the other nodes."""

    capacity: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if self.capacity <= 0:
            raise NoNodes(f"a node's capacity must be above 0, got {self.capacity}; leave the node out instead")


@dataclass(frozen=True, slots=True)
class PlacementPrices:
    """Every tree passes over the rows itself: a tree costs the rate and its final operations."""

    rate: Fraction
    cost: Cost

    def of(self, part: Part) -> Fraction:
        return self.rate + part.high * part.omega

    def weave(self, left: Part, right: Part) -> Part:
        """Two trees as one."""
        edges = union(left.pieces + right.pieces)
        rates = edge_rate_between(edges)  # enclosed where counting would not end
        queries = tuple(sorted(left.queries + right.queries))
        return Part.priced(queries, (edges,), rates, left.load | right.load, self.cost)


class PlacementBuilder:
    """A placement under construction. `costs[n]` is in operations per second; a load is a cost over a capacity."""

    def __init__(self, nodes: Sequence[ClusterNode], prices: PlacementPrices) -> None:
        if not nodes:
            raise NoNodes("there are no nodes; give at least one")
        self.nodes, self.prices = tuple(nodes), prices
        self.parts: list[list[Part]] = [[] for _ in nodes]
        self.costs: list[Fraction] = [Fraction(0) for _ in nodes]

    def load(self, node: int, more: Fraction = Fraction(0)) -> Fraction:
        return (self.costs[node] + more) / self.nodes[node].capacity

    def lowest(self, more: Fraction = Fraction(0)) -> int:
        """The node with the smallest load after `more` operations per second are added to it."""
        return min(range(len(self.nodes)), key=lambda node: self.load(node, more))

    def group(self, part: Part, node: int) -> None:
        """Add the part to the node as a tree of its own."""
        self.parts[node].append(part)
        self.costs[node] += self.prices.of(part)

    def weave(self, part: Part, node: int, tree: int, woven: Part | None = None) -> None:
        """Weave the part into a tree of the node."""
        old = self.parts[node][tree]
        new = woven or self.prices.weave(old, part)
        self.parts[node][tree] = new
        self.costs[node] += self.prices.of(new) - self.prices.of(old)

    def placed(self, optimizer: str) -> Placement:
        trees = tuple(tuple(part.tree(self.prices.cost) for part in parts) for parts in self.parts)
        return Placement(optimizer, trees, tuple(self.costs), self.nodes)


Optimizer = Callable[[Sequence[Part], Sequence[ClusterNode], PlacementPrices, Random], PlacementBuilder]
"""Puts every tree on a node, alone or woven with others."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The trees of each node, and what they cost it in operations per second."""

    optimizer: str
    trees: tuple[tuple[Tree, ...], ...]
    costs: tuple[Fraction, ...]
    nodes: tuple[ClusterNode, ...]

    @property
    def total(self) -> Fraction:
        """Equation 6.1."""
        return sum(self.costs, Fraction(0))

    @property
    def maximum(self) -> Fraction:
        """Equation 6.2, a node's cost divided by its capacity."""
        return max(cost / node.capacity for cost, node in zip(self.costs, self.nodes))


def most_expensive_first(parts: Iterable[Part], prices: PlacementPrices) -> list[Part]:
    return sorted(parts, key=lambda part: (-prices.of(part), part.position))
