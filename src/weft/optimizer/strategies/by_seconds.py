"""Plans by the seconds that they take on this machine, instead of the papers' operations.

The papers count a row of a pass and a final operation alike. Measured, they differ widely: a final operation takes
nanoseconds, a shuffled partial a microsecond, and each slice makes one partial per group. The searches stay the same.
Only the weight of a pass changes: Weave Share plans for passes that weigh more and less than the rate, from hardly any
sharing to one tree, and the plan with the shortest estimated time is kept. The plan of the requested strategy is one of
the candidates, so the result never takes longer by the estimate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from weft.calibration.weights import Weights
from weft.model import Workload
from weft.optimizer.cost.operations import Cost, Statistics
from weft.optimizer.cost.seconds import Stream, estimate
from weft.optimizer.strategies import Strategy
from weft.optimizer.strategies.base import priced
from weft.optimizer.strategies.tri_weave import tri_weave
from weft.optimizer.strategies.weave_share import weave_share
from weft.plan.logical import Plan

WEIGHTS = tuple(Fraction(10) ** power for power in range(-6, 7) if power)
"""Weights of a pass, in operations per row: from a millionth to a million."""


def plan_by_seconds(
    workload: Workload, statistics: Statistics, cost: Cost, search: Strategy, weights: Weights, stream: Stream
) -> Plan:
    """The fastest of the strategy's own plan, TriWeave's, and those of Weave Share."""
    plans = list(_candidates(workload, statistics, cost, search))
    seconds = [estimate(plan, weights, stream).seconds for plan in plans]
    least = min(range(len(plans)), key=lambda i: seconds[i])
    return replace(plans[least], seconds=seconds[least], seconds_of=(seconds[0], len(plans)))


def _candidates(workload: Workload, statistics: Statistics, cost: Cost, search: Strategy) -> Iterator[Plan]:
    """The plan of the strategy first; all are priced at the true rate."""
    yield search(workload, statistics, cost)
    yield tri_weave(workload, statistics, cost)
    last = weave_share(workload, statistics, cost)
    yield last
    for weight in WEIGHTS if statistics.rate else ():
        plan = weave_share(workload, Statistics(statistics.rate * weight), cost)
        if plan.trees != last.trees:
            yield priced(plan, statistics, cost)
        last = plan
