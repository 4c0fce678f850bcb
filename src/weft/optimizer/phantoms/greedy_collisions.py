"""GC: add the phantom that saves most, while one saves anything; all memory is divided anew each time (section 4.2).

The paper's queries never contain one another. Here they may: it begins with those feeding others where that is
cheaper, and a step can also let a table that there is feed more.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from weft.optimizer.phantoms.allocation import Allocation, given
from weft.optimizer.phantoms.choice import Additions, Candidates, Choice, Fed, Moves, Step
from weft.optimizer.phantoms.relation import Relation
from weft.optimizer.phantoms.statistics import GroupStatistics, Prices


def greedy_by_collisions(
    queries: Iterable[Relation], statistics: GroupStatistics, memory: float, prices: Prices, allocation: Allocation
) -> Choice:
    candidates = Candidates(queries, statistics)
    left = candidates.phantoms
    fed, nested = candidates.begin(), candidates.nested()
    cost, cost_nested = (_cost(begun, memory, prices, allocation) for begun in (fed, nested))
    steps = [Step(None, cost)]
    if cost_nested < cost:  # many steps at once
        fed, cost = nested, cost_nested
        steps.append(Step(None, cost))
    while True:
        best: tuple[float, Additions | Moves, int] | None = None
        for ways in (fed.with_each(left), fed.with_other_feeders()):
            if len(ways):
                forests = ways.forests()
                costs = forests.cost(allocation(forests, memory, prices), prices)
                place = int(costs.argmin())
                if costs[place] < (cost if best is None else best[0]):
                    best = float(costs[place]), ways, place
        if best is None:
            break
        cost, chosen, place = best
        fed = chosen.take(place)
        steps.append(Step(chosen.relation(place), cost))
        left = left[~np.isin(left, fed.slots)]
    configuration = fed.configuration
    # In the order that the configuration lists its tables in.
    at = {candidates.relations[number]: slot for slot, number in enumerate(fed.slots.tolist())}
    slots = np.array([at[relation] for relation in configuration.relations], np.int64)
    moved = np.append(np.argsort(slots), len(slots))
    ordered = Fed(candidates, fed.slots[slots], moved[fed.parents[slots]])
    forests = ordered.forests()
    return Choice(given(configuration, forests, allocation(forests, memory, prices), prices), tuple(steps))


def _cost(fed: Fed, memory: float, prices: Prices, allocation: Allocation) -> float:
    forests = fed.forests()
    return float(forests.cost(allocation(forests, memory, prices), prices)[0])
