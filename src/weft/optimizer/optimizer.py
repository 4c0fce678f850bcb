"""From a workload to a plan: which queries share a tree, which trees share a pass, and what that costs.

>>> from weft.model import ACQ, Call, Window
>>> def query(name: str, seconds: int, slide: int) -> ACQ:
...     return ACQ(name, Window(seconds * 1_000_000, slide * 1_000_000), (Call("max", ("price",)),), ())
>>> workload = [query("a", 16, 4), query("b", 10, 5), query("c", 8, 4)]
>>> plan = optimize(workload, rate=1.2, strategy="weave_share", technique="panes")
>>> [tree.queries for tree in plan.trees], float(plan.cost), float(plan.unshared)
([('a', 'c'), ('b',)], 4.3, 5.5)
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar

from weft.calibration.weights import Weights
from weft.model import ACQ, PlanError, Workload, at_intervals
from weft.optimizer.closest_merge import find_refused_merge
from weft.optimizer.cost.omega import TECHNIQUES
from weft.optimizer.cost.operations import Cost, Statistics
from weft.optimizer.cost.seconds import Stream
from weft.optimizer.guarantee import find_guarantee
from weft.optimizer.strategies import STRATEGIES
from weft.optimizer.strategies.by_seconds import plan_by_seconds
from weft.plan.check import check_plan
from weft.plan.logical import Plan

DEFAULT_RATE = 10_000
"""Rows per second, unless you set a rate."""

COSTS: Mapping[str, bool] = {"operations": False, "seconds": True}
"""What plans are compared by: the papers' operations, or seconds, which need a calibrated machine."""

Rate = int | float | str | Fraction | Decimal


class CannotOptimize(PlanError):
    """A request without queries, or with an unknown strategy, technique or rate."""


def _gate(plan: Plan, cost: Cost) -> Plan:
    check_plan(plan)
    return plan


STAGES: tuple[Callable[[Plan, Cost], Plan], ...] = (
    # Needs the trees of the strategy: says which merge was the closest, and its cost.
    find_refused_merge,
    # Needs the cost: says what share of all possible savings is certain, and whether theorem 1 holds.
    find_guarantee,
    # Changes nothing. Rejects a plan that loses a query or cuts a slice.
    _gate,
)
"""What happens to a strategy's plan, in this order."""


def optimize(
    workload: Iterable[ACQ],
    rate: Rate = DEFAULT_RATE,
    strategy: str = "tri_weave",
    technique: str = "auto",
    *,
    cost: str = "operations",
    weights: Weights | None = None,
    stream: Stream | None = None,
) -> Plan:
    """Plan the queries for a stream of `rate` rows per second.

    `cost="seconds"` chooses the plan that takes the fewest seconds by the weights of a machine, for `stream`: see
    `weft.optimizer.strategies.by_seconds`.
    """
    workload = workload if isinstance(workload, Workload) else Workload(workload)
    if any(query.refresh == "at_most" for query in workload):
        workload = Workload(map(at_intervals, workload))
    if not workload:
        raise CannotOptimize("there is no query to plan; give at least one")
    priced = Cost(_choice("technique", technique, TECHNIQUES))
    search, statistics = _choice("strategy", strategy, STRATEGIES), Statistics(exact_rate(rate))
    with _uncollected():
        if not _choice("cost", cost, COSTS):
            plan = search(workload, statistics, priced)
        elif weights is None:
            raise CannotOptimize("seconds are not known on this machine; run `weft calibrate`, or plan by operations")
        else:
            plan = plan_by_seconds(workload, statistics, priced, search, weights, stream or Stream())
        for stage in STAGES:
            plan = stage(plan, priced)
    return plan


@contextmanager
def _uncollected() -> Iterator[None]:
    """No garbage collection while planning: plans have no cycles, and collecting among a million queries takes longer
    than planning them.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            # Moves all objects to the oldest generation; otherwise the next small collection visits them.
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


T = TypeVar("T")


def _choice(kind: str, name: str, choices: Mapping[str, T]) -> T:
    if name not in choices:
        raise CannotOptimize(f"there is no {kind} {name!r}; choose one of {', '.join(choices)}")
    return choices[name]


def exact_rate(rate: Rate) -> Fraction:
    """A float means what it prints: 1.2 is 6/5."""
    try:
        exact = Fraction(str(rate).replace("_", "").strip())
    except (ValueError, ZeroDivisionError):
        raise CannotOptimize(f"rate must be a number of rows per second, such as 10000 or 1.2, got {rate!r}") from None
    if exact < 0:
        raise CannotOptimize(f"rate must not be negative, got {rate}; give rows per second, such as 10000 or 1.2")
    return exact
