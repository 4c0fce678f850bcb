"""GC: add the phantom that saves most, while one saves anything; all memory is divided again each time (section 4.2).

The paper's queries never contain one another. Here they may: the search begins with queries that feed others if that
is cheaper, and a step can also let an existing table feed more.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from weft.calibration.table_costs import ProbeCosts
from weft.optimizer.phantoms.allocation import Allocation, priced
from weft.optimizer.phantoms.base import Additions, Candidates, Choice, ChoiceStep, FedTables, Moves
from weft.optimizer.phantoms.relation import Relation
from weft.optimizer.phantoms.statistics import GroupStatistics


def greedy_by_collisions(
    queries: Iterable[Relation], statistics: GroupStatistics, memory: float, prices: ProbeCosts, allocation: Allocation
) -> Choice:
    candidates = Candidates(queries, statistics)
    left = candidates.phantoms
    fed, nested = candidates.begin(), candidates.nested()
    cost, cost_nested = (_cost(begun, memory, prices, allocation) for begun in (fed, nested))
    steps = [ChoiceStep(None, cost)]
    if cost_nested < cost:  # many steps at once
        fed, cost = nested, cost_nested
        steps.append(ChoiceStep(None, cost))
    while True:
        # Phantoms first, as in the paper; other feeders are tried when no phantom saves anything.
        addition = _best(fed.with_each(left), cost, memory, prices, allocation)
        addition = addition or _best(fed.with_other_feeders(), cost, memory, prices, allocation)
        if addition is None:
            break
        step, fed = addition
        cost = step.cost
        steps.append(step)
        left = left[~np.isin(left, fed.slots)]
    configuration = fed.configuration
    # In the order that the configuration lists its tables in.
    at = {candidates.relations[number]: slot for slot, number in enumerate(fed.slots.tolist())}
    slots = np.array([at[relation] for relation in configuration.relations], np.int64)
    moved = np.append(np.argsort(slots), len(slots))
    ordered = FedTables(candidates, fed.slots[slots], moved[fed.parents[slots]])
    forests = ordered.forests()
    return Choice(priced(configuration, forests, allocation(forests, memory, prices), prices), tuple(steps))


def _cost(fed: FedTables, memory: float, prices: ProbeCosts, allocation: Allocation) -> float:
    forests = fed.forests()
    return float(forests.cost(allocation(forests, memory, prices), prices)[0])


def _best(
    ways: Additions | Moves, cost: float, memory: float, prices: ProbeCosts, allocation: Allocation
) -> tuple[ChoiceStep, FedTables] | None:
    """The cheapest of these, if it costs less than `cost`."""
    if not len(ways):
        return None
    forests = ways.forests()
    costs = forests.cost(allocation(forests, memory, prices), prices)
    place = int(costs.argmin())
    return (ChoiceStep(ways.relation(place), float(costs[place])), ways.take(place)) if costs[place] < cost else None
