"""The paper's formulas and tables as plain loops: slow, and as they are printed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import comb, lcm, prod

import numpy as np
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from weft.model import WeftError
from weft.optimizer.phantoms import Configuration, GroupStatistics, ProbeCosts, Relation, read
from weft.optimizer.phantoms.collisions import MU, Floats
from weft.optimizer.phantoms.epochs import eviction_rate

ALPHA = 0.0267


def collision_rate_by_occupancy(groups: int, buckets: int) -> float:
    """Equation 12, of which 13 is the sum: over buckets that `k` groups share, each but one of them collides."""
    one = 1.0 / buckets
    shared = (comb(groups, k) * one**k * (1 - one) ** (groups - k) * (k - 1) for k in range(2, groups + 1))
    return buckets * sum(shared) / groups


def low_collision_rate(groups: ArrayLike, buckets: ArrayLike) -> Floats:
    """Equation 16: nearly a line where rates are low, which is where phantoms pay. Space is divided by its slope."""
    return ALPHA + MU * np.asarray(groups, np.float64) / np.asarray(buckets, np.float64)


def evictions(epochs: Iterable[int], cycle: int | None = None) -> int:
    """Times in a cycle, which is the least common multiple where none is given (equation 24)."""
    lengths = frozenset(epochs)
    times = eviction_rate(lengths) * (lcm(*lengths) if cycle is None else cycle)
    if times.denominator != 1:
        raise WeftError(f"a cycle of {cycle} is no multiple of the epochs {sorted(lengths)}; give one that is")
    return int(times)


def ancestors(configuration: Configuration, relation: Relation) -> list[Relation]:
    found: list[Relation] = []
    parent = configuration.parents[relation]
    while parent is not None:
        found.append(parent)
        parent = configuration.parents[parent]
    return found


def rates(
    configuration: Configuration, statistics: GroupStatistics, buckets: Mapping[Relation, int]
) -> dict[Relation, float]:
    """Equation 12 over the flow length of the table's depth."""
    lengths = statistics.flows.by_depth
    return {
        r: collision_rate_by_occupancy(int(statistics.groups[r]), buckets[r])
        / lengths[min(len(ancestors(configuration, r)), len(lengths) - 1)]
        for r in configuration.relations
    }


def row_cost(configuration: Configuration, x: Mapping[Relation, float], prices: ProbeCosts) -> float:
    """Equation 7, for configurations whose queries are leaves."""
    cost = 0.0
    for relation in configuration.relations:
        reached = prod(x[above] for above in ancestors(configuration, relation))
        cost += reached * prices.probe
        if relation in configuration.queries:
            cost += reached * x[relation] * prices.eviction
    return cost


def emptying(
    configuration: Configuration, x: Mapping[Relation, float], buckets: Mapping[Relation, int], prices: ProbeCosts
) -> float:
    """Equation 8: what every table above sends down, through all tables between."""
    cost = 0.0
    for relation in configuration.relations:
        above = ancestors(configuration, relation)  # the nearest first
        for place, sender in enumerate(above):
            cost += buckets[sender] * prod(x[between] for between in above[:place]) * prices.probe
            if relation in configuration.queries:
                sent = prod(x[between] for between in (relation, *above[:place]))
                cost += buckets[sender] * sent * prices.eviction
        if relation in configuration.queries:
            cost += buckets[relation] * prices.eviction
    return cost


def evictions_by_inclusion(epochs: Sequence[int], cycle: int) -> int:
    """Equation 24."""
    return sum(
        (-1) ** (size + 1) * cycle // lcm(*some)
        for size in range(1, len(epochs) + 1)
        for some in combinations(epochs, size)
    )


def throw_by_loop(groups: Sequence[int], places: Sequence[int]) -> tuple[list[int], list[int]]:
    """A dictionary as the table: which rows collide, and the last row of each group that they throw out."""
    table: dict[int, int] = {}
    when: list[int] = []
    thrown: list[int] = []
    for row, (group, place) in enumerate(zip(groups, places)):
        if place in table and groups[table[place]] != group:
            when.append(row)
            thrown.append(table[place])
        table[place] = row
    return when, thrown


LETTERS = "ABCDE"


@st.composite
def query_sets(draw: st.DrawFn, most: int = 5) -> list[Relation]:
    some = st.frozensets(st.sampled_from(LETTERS), min_size=1, max_size=3)
    return sorted(draw(st.sets(some, min_size=1, max_size=most)), key=sorted)


@st.composite
def statistics(draw: st.DrawFn) -> GroupStatistics:
    from weft.optimizer.phantoms import Flows

    counts = {read(letter): float(draw(st.integers(1, 3000))) for letter in LETTERS}
    flows = draw(st.sampled_from([Flows(), Flows((30, 2, 1)), Flows((5,))]))
    rows = draw(st.sampled_from([float("inf"), 1e5, 1e7]))
    epochs = {read(letter): (draw(st.integers(1, 6)),) for letter in LETTERS}
    return GroupStatistics(counts, flows, rows, epochs)
