"""GC: add the phantom that saves most, while one saves anything; all memory is divided anew each time (section 4.2)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from weft.optimizer.phantoms.allocation import Allocation, given
from weft.optimizer.phantoms.choice import Candidates, Choice, Fed, Step
from weft.optimizer.phantoms.relation import Relation
from weft.optimizer.phantoms.statistics import GroupStatistics, Prices


def greedy_by_collisions(
    queries: Iterable[Relation], statistics: GroupStatistics, memory: float, prices: Prices, allocation: Allocation
) -> Choice:
    candidates = Candidates(queries, statistics)
    fed = candidates.begin()
    left = candidates.phantoms
    cost = _cost(fed, memory, prices, allocation)
    steps = [Step(None, cost)]
    while len(left):
        additions = fed.with_each(left)
        if not len(additions):
            break
        forests = additions.forests()
        costs = forests.cost(allocation(forests, memory, prices), prices)
        best = int(costs.argmin())
        if not costs[best] < cost:
            break
        phantom = additions.phantoms[best]
        fed, cost = additions.take(best), float(costs[best])
        steps.append(Step(candidates.relations[phantom], cost))
        left = left[left != phantom]
    configuration = fed.configuration
    # In the order that the configuration lists its tables in.
    place = {candidates.relations[number]: slot for slot, number in enumerate(fed.slots.tolist())}
    slots = np.array([place[relation] for relation in configuration.relations], np.int64)
    moved = np.append(np.argsort(slots), len(slots))
    ordered = Fed(candidates, fed.slots[slots], moved[fed.parents[slots]])
    forests = ordered.forests()
    return Choice(given(configuration, forests, allocation(forests, memory, prices), prices), tuple(steps))


def _cost(fed: Fed, memory: float, prices: Prices, allocation: Allocation) -> float:
    forests = fed.forests()
    return float(forests.cost(allocation(forests, memory, prices), prices)[0])
