"""Plans as frozen values: which queries share a tree, how a tree is fed, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from weft.model import Edges, Workload


@dataclass(frozen=True, slots=True)
class Served:
    """The technique for one operator of a tree, and its time: nanoseconds per group and second of stream."""

    operator: str
    technique: str
    nanoseconds: float | None = None
    """None: the user set the technique."""
    next_best: str | None = None
    next_nanoseconds: float | None = None


@dataclass(frozen=True, slots=True)
class Tree:
    """Queries that share one slicing."""

    queries: tuple[str, ...]
    edges: Edges
    edge_rate: Fraction
    """Slices per second."""
    omega: Fraction
    """Final operations per slice."""
    technique: str
    serving: tuple[Served, ...] = ()
    """Empty until techniques are chosen."""
    edge_rate_high: Fraction | None = None
    """Where edges are bounded instead of counted: there are at least `edge_rate`, and at most this many."""

    @property
    def final_cost(self) -> Fraction:
        return self.edge_rate * self.omega


@dataclass(frozen=True, slots=True)
class Feed:
    """One native pass over the rows: a grouping, the slices it makes, and the trees (by index) that fold them.

    Weave Share feeds each tree by itself; TriWeave feeds all trees of a grouping from one composite slicing.
    """

    keys: tuple[str, ...]
    edges: Edges
    edge_rate: Fraction
    trees: tuple[int, ...]
    fold_cost: Fraction = Fraction(0)
    """Operations per second to fold slices of the feed into those of its trees; 0 for a tree with its own pass."""
    edge_rate_high: Fraction | None = None
    """As for a tree."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The closest merge that was not made: explains why the plan keeps its trees separate."""

    left: int
    right: int
    cost: Fraction
    """The cost of the plan if the two trees (by index) were merged."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of theorem 1; `problem` says why it does not hold, None: it holds."""

    asks: str
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A lower bound: the plan saves at least `share` of what any plan with a pass per tree saves."""

    conditions: tuple[Condition, ...]
    share: Fraction

    @property
    def theorem_1(self) -> bool:
        """Whether all conditions of theorem 1 (paper 2) hold: then the share is a quarter or more."""
        return all(condition.problem is None for condition in self.conditions)


@dataclass(frozen=True, slots=True)
class Plan:
    """Trees with their feeds and costs; `cost` is in aggregate operations per second."""

    workload: Workload
    strategy: str
    technique: str
    rate: Fraction
    trees: tuple[Tree, ...]
    feeds: tuple[Feed, ...]
    cost: Fraction
    unshared: Fraction
    """The cost of the same queries with one tree per query."""
    optimal: bool = False
    """The cheapest of all plans in which the trees of a grouping have a pass each, or all fold one slicing."""
    refused: Refusal | None = None
    guarantee: Guarantee | None = None
    seconds: float | None = None
    """Calibrated seconds of work per second of stream; None where the machine was not measured."""
    seconds_of: tuple[float, int] | None = None
    """Where plans were compared by seconds: those of the strategy's own plan, and how many plans were compared."""
    calibrated: bool = False
    """Techniques were chosen by speeds measured on this machine."""
    cost_high: Fraction | None = None
    """Where edges are bounded instead of counted: the plan costs at least `cost`, and at most this much."""
