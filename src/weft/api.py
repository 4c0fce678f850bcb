"""`weft.optimize`: the optimizer on queries as users have them."""

from __future__ import annotations

from weft.calibration.file import load_speeds, load_weights
from weft.optimizer import optimize as optimize_workload
from weft.optimizer.choose_techniques import Latency, checked_latency, serve
from weft.plan import Plan
from weft.sql.inputs import Queries, read_queries


def optimize(
    queries: Queries,
    *,
    rate: float = 10_000,
    strategy: str = "tri_weave",
    technique: str = "auto",
    latency: Latency = "batch",
    cost: str = "operations",
    event_time: str = "ts",
) -> Plan:
    """Which of the queries share a tree, and what that costs; no Spark is started.

    With `cost="seconds"` plans are compared by what `weft calibrate` measured on this machine.
    """
    workload = read_queries(queries, event_time)
    weights = load_weights() if cost == "seconds" else None
    plan = optimize_workload(workload, rate, strategy, technique, cost=cost, weights=weights)
    return serve(plan, load_speeds(), latency=checked_latency(latency))
