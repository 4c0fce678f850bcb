"""GP: each table gets `phi` buckets per group; add phantoms by what they save per unit of space, while memory lasts.

Section 4.1; the remaining memory is then divided in proportion to the groups, as in section 8.4. By the paper's text,
phantoms are added even if each costs more than it saves; here, adding stops then.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from weft.calibration.table_costs import ProbeCosts
from weft.model import WeftError
from weft.optimizer.phantoms.allocation import allocate
from weft.optimizer.phantoms.base import Additions, Candidates, Choice, ChoiceStep
from weft.optimizer.phantoms.collisions import Floats
from weft.optimizer.phantoms.configuration_arrays import Forests
from weft.optimizer.phantoms.relation import Relation
from weft.optimizer.phantoms.statistics import GroupStatistics

PHI = 1.0
"""Default buckets per group; the paper tries 0.6 to 2 and finds no value that is good everywhere."""


def greedy_by_space(
    queries: Iterable[Relation], statistics: GroupStatistics, memory: float, prices: ProbeCosts, phi: float = PHI
) -> Choice:
    if not phi > 0:
        raise WeftError(f"phi is buckets per group and must be above 0, got {phi}")
    candidates = Candidates(queries, statistics)
    fed = candidates.begin()
    left = candidates.phantoms
    wanted_space = phi * candidates.columns.groups * candidates.columns.widths
    forests = fed.forests()
    cost = float(forests.cost(_wanted_space(forests, phi), prices)[0])
    steps = [ChoiceStep(None, cost)]
    remaining = memory - float(wanted_space[fed.slots].sum())
    while True:
        # Without a new table first: that takes no space.
        for ways in (fed.with_other_feeders(), fed.with_each(left[wanted_space[left] < remaining])):
            if not len(ways):
                continue
            forests = ways.forests()
            saved = cost - forests.cost(_wanted_space(forests, phi), prices)
            place = int((saved / wanted_space[ways.phantoms] if isinstance(ways, Additions) else saved).argmax())
            if saved[place] > 0:
                fed, cost = ways.take(place), cost - float(saved[place])
                steps.append(ChoiceStep(ways.relation(place), cost))
                break
        else:
            break
        remaining = memory - float(wanted_space[fed.slots].sum())
        left = left[~np.isin(left, fed.slots)]
    # All tables have phi buckets per group, so dividing the rest in proportion keeps the whole in proportion.
    return Choice(allocate(fed.configuration, statistics, memory, prices, "pl"), tuple(steps))


def _wanted_space(forests: Forests, phi: float) -> Floats:
    return phi * forests.groups * forests.widths
