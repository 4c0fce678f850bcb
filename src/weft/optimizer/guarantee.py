"""What is certain about a plan's savings, without looking at all other plans.

Theorem 1 (paper 2): Weave Share saves at least a quarter of what the best plan with a pass per tree saves, if windows
tumble, there are many more rows than slices, and it merges at least half as often as the best plan. The best plan is
not known, but it merges at most all queries of each grouping into one tree.

Any plan costs at least one pass per grouping and the final operations that no merge can save. This bounds the savings
of the best plan, so the savings of a plan divided by that bound are a share of the best that is guaranteed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from heapq import heappop, heappush

from weft.model import Edges
from weft.optimizer.cost.operations import Cost
from weft.optimizer.edge_counting import edge_rate
from weft.optimizer.strategies.base import Positioned, groupings
from weft.plan import format
from weft.plan.logical import Condition, Guarantee, Plan

QUARTER = Fraction(1, 4)

MANY = 20_000
"""Most queries for which the cost of each alone is computed, where the costs of a technique do not simply add up."""


def find_guarantee(plan: Plan, cost: Cost) -> Plan:
    conditions = theorem_1(plan)
    share = Fraction(1) if plan.optimal else certain_share(plan, cost)
    if all(condition.problem is None for condition in conditions):
        share = max(share, QUARTER)
    return replace(plan, guarantee=Guarantee(conditions, share))


def theorem_1(plan: Plan) -> tuple[Condition, ...]:
    """The conditions of the theorem; the first is that it applies to this kind of plan.

    Where windows overlap, the theorem does not apply, and the edge rates of all pairs are not worth counting.
    """
    overlap = _overlap(plan)
    rows = None if overlap else _rows(plan, groupings(plan.workload))
    return (
        Condition("the plan is Weave Share's, and final operations are those of Panes", _subject(plan)),
        Condition("the range of each query is its slide", overlap),
        *([] if overlap else [Condition("the rate is twice the edge rate of any two queries", rows)]),
        Condition("at least half as many merges as in the best plan", _merges(plan)),
    )


def certain_share(plan: Plan, cost: Cost) -> Fraction:
    """The savings of the plan over the most that any plan could save: at least this share of the best."""
    possible = plan.unshared - _least_cost(plan, cost)
    return max(Fraction(0), (plan.unshared - (plan.cost_high or plan.cost)) / possible) if possible > 0 else Fraction(1)


def _least_cost(plan: Plan, cost: Cost) -> Fraction:
    passes, final = len({query.grouping for query in plan.workload}) * plan.rate, Fraction(0)
    technique = cost.technique
    if technique.additive and technique.floor is technique.omega:
        # No tree costs less than its queries do alone, so nothing but passes can be saved.
        final = plan.unshared - len(plan.workload) * plan.rate
    elif technique.floor is technique.omega and len(plan.workload) <= MANY:
        final = sum((_most_expensive(group, cost) for group in groupings(plan.workload)), Fraction(0))
    return passes + final


def _most_expensive(group: Sequence[Positioned], cost: Cost) -> Fraction:
    """Final operations of the most expensive query alone; of windows that differ only in range, the longest counts."""
    longest: dict[tuple[int, int], int] = {}
    for _, query in group:
        key = (query.window.slide, 2 if query.window.length % query.window.slide else 1)
        longest[key] = max(longest.get(key, 0), query.window.length)
    return max(cost.final_alone(*key, [length]) for key, length in longest.items())


def _subject(plan: Plan) -> str | None:
    if plan.strategy == "weave_share" and plan.technique == "panes":
        return None
    return f"the plan is {plan.strategy} with {plan.technique}, and the theorem is about weave_share with panes"


def _overlap(plan: Plan) -> str | None:
    for query in plan.workload:
        if query.window.length != query.window.slide:
            length, slide = format.duration(query.window.length), format.duration(query.window.slide)
            return f"{query.name} has range {length} and slide {slide}"
    return None


def _rows(plan: Plan, groups: Iterable[Sequence[Positioned]]) -> str | None:
    for group in groups:
        names: dict[Edges, list[str]] = {}
        for _, query in group:
            names.setdefault(Edges.of([query.window]), []).append(query.name)
        twice = {edges: named[1] for edges, named in names.items() if len(named) > 1}
        rates = sorted(((edge_rate(edges), named[0], edges) for edges, named in names.items()), reverse=True, key=_rate)
        pairs = [(rate, name, twice[edges]) for rate, name, edges in rates if edges in twice]
        for together, one, other in (*pairs[:1], *_densest_pairs(rates, plan.rate / 2)):
            if 2 * together > plan.rate:
                slices, rows = float(together), format.number(plan.rate)
                return f"{one} and {other} cut {slices:,.3f} slices/s, twice that is above {rows} rows/s"
    return None


Rated = tuple[Fraction, str, Edges]


def _rate(entry: Rated) -> tuple[Fraction, str]:
    return entry[0], entry[1]


def _densest_pairs(rates: Sequence[Rated], above: Fraction) -> Iterator[tuple[Fraction, str, str]]:
    """Pairs with their edge rates, as long as the sum of the two, which is no less, is above `above`."""
    waiting: list[tuple[Fraction, int, int]] = []

    def wait(i: int, j: int) -> None:
        if j < len(rates) and rates[i][0] + rates[j][0] > above:
            heappush(waiting, (-(rates[i][0] + rates[j][0]), i, j))

    for i in range(len(rates) - 1):
        wait(i, i + 1)
    while waiting:
        _, i, j = heappop(waiting)
        yield edge_rate(rates[i][2] | rates[j][2]), rates[i][1], rates[j][1]
        wait(i, j + 1)


def _merges(plan: Plan) -> str | None:
    """Each tree has queries of one grouping."""
    queries, trees = Counter[tuple[str, str, tuple[str, ...]]](), Counter[tuple[str, str, tuple[str, ...]]]()
    for tree in plan.trees:
        grouping = plan.workload.by_name[tree.queries[0]].grouping
        queries[grouping] += len(tree.queries)
        trees[grouping] += 1
    for grouping, count in queries.items():
        most, made = count - 1, count - trees[grouping]
        if 2 * made < most:
            return f"{made} merges are made where the best plan may make up to {most}"
    return None
