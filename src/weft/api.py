"""`weft.optimize`: the optimizer on queries as users have them."""

from __future__ import annotations

from weft.optimizer import optimize as optimize_workload
from weft.optimizer.serving import Latency, known_latency, load_speeds, serve
from weft.plan import Plan
from weft.sql.read import Queries, read_queries


def optimize(
    queries: Queries,
    *,
    rate: float = 10_000,
    strategy: str = "tri_weave",
    technique: str = "auto",
    latency: Latency = "batch",
    event_time: str = "ts",
) -> Plan:
    """Which of the queries share a tree, and what that costs; no Spark is started."""
    plan = optimize_workload(read_queries(queries, event_time), rate=rate, strategy=strategy, technique=technique)
    return serve(plan, load_speeds(), latency=known_latency(latency))
