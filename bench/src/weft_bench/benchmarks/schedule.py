"""The gain of synchronised schedules: the policies of paper 4 on its workload, simulated, and the cost of hybrid."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from time import perf_counter

from weft.schedule import POLICIES, groups, schedule_cost, shorten, sub_groups
from weft.schedule.periods import merge_greedily
from weft.schedule.task import merged
from weft_bench.benchmark import Benchmark, Report, Row, Say, integer, numbers, option
from weft_bench.figures.figure import mean
from weft_bench.figures.schedule.setting import FIELDS, HIGH, LOW, SPEED, Counters, draw, play
from weft_bench.machine import describe_machine, load

COMPARED = ("edf", "aggressive", "conservative", "hybrid", "late", "late_pending")

SUMMARY = {
    "hybrid_over_conservative_throughput": "at 1500 rows/s, most queries; the bar is 2",
    "hybrid_over_conservative_throughput_least": "the same, the least of all numbers of queries",
    "hybrid_over_conservative_throughput_by_queries": "the same for each; the paper has 40 to 240, and says "
    "of all of figure 5 that hybrid easily doubles it",
    "conservative_over_hybrid_latency": "at 1500 rows/s, most queries; the bar is 10",
    "conservative_over_hybrid_latency_most": "the same, the most of all numbers of queries",
    "conservative_over_hybrid_latency_by_queries": "the same for each; the paper says of all of figure 6: an order of "
    "magnitude",
    "late_pending_over_hybrid_throughput": "at 3000 rows/s, most queries; the bar is 2",
    "late_pending_over_hybrid_throughput_least": "the same, the least of all numbers of queries",
    "late_pending_over_hybrid_throughput_by_queries": "the same for each; the paper says of all of figure 7: more than "
    "doubles",
    "hybrid_tasks_percent": "of the tasks that conservative has; the paper: often half",
    "hybrid_over_conservative_cost": "modelled cost, the mean of all groups",
    "hybrid_over_aggressive_cost": "the same",
    "greedy_over_optimum_cost_most": "greedy merging against dynamic programming, the most of all groups",
    "proven_percent": "groups for which the optimum is proven",
    "choose_milliseconds_most": "periods of one group by dynamic programming",
    "load": "the load average at the beginning: it disturbs the time of choosing; the rest is simulated",
}


@dataclass(frozen=True, slots=True)
class ScheduleSettings:
    queries: tuple[int, ...] = option(
        (5, 10, 20, 30), "Queries per group, of eight groups.", quick=(5, 30), parse=numbers, metavar="N,N"
    )
    repeat: int = option(5, "Workloads per point, which shows their mean.", quick=2)
    speed: int = option(SPEED, "Counters that are combined per second.")
    seconds: int = option(200, "Simulated.")
    seed: int = option(1, "Seed of the first workload; the others have the next numbers.", parse=integer)


def run(settings: ScheduleSettings, say: Say) -> Report:
    busy, rows = load(), []
    for rate in (LOW, HIGH):
        for queries in settings.queries:
            rows += [_point(policy, queries, rate, settings) for policy in COMPARED]
            say(f"{queries * len(FIELDS)} queries at {rate} rows/s")
    chosen = [row for queries in settings.queries for row in _choices(queries, settings.seed)]
    say(f"periods of {len(chosen)} groups")
    at = {(row["policy"], row["rate"], row["queries"]): row for row in rows}
    sizes = [queries * len(FIELDS) for queries in settings.queries]

    def gains(y: str, one: str, other: str, rate: int) -> list[float]:
        return [_over(at[one, rate, n][y], at[other, rate, n][y]) for n in sizes]

    def at_each(values: list[float]) -> dict[str, float]:
        return {str(n): gain for n, gain in zip(sizes, values, strict=True)}

    throughput = gains("throughput", "hybrid", "conservative", LOW)
    latency = gains("latency", "conservative", "hybrid", LOW)
    late = gains("throughput", "late_pending", "hybrid", HIGH)
    tasks = [sum(at[p, LOW, n]["tasks"] for n in sizes) for p in ("hybrid", "conservative")]
    summary = {
        "hybrid_over_conservative_throughput": throughput[-1],
        "hybrid_over_conservative_throughput_least": min(throughput),
        "hybrid_over_conservative_throughput_by_queries": at_each(throughput),
        "conservative_over_hybrid_latency": latency[-1],
        "conservative_over_hybrid_latency_most": max(latency),
        "conservative_over_hybrid_latency_by_queries": at_each(latency),
        "late_pending_over_hybrid_throughput": late[-1],
        "late_pending_over_hybrid_throughput_least": min(late),
        "late_pending_over_hybrid_throughput_by_queries": at_each(late),
        "hybrid_tasks_percent": 100 * tasks[0] / tasks[1],
        "hybrid_over_conservative_cost": mean([row["hybrid"] / row["conservative"] for row in chosen]),
        "hybrid_over_aggressive_cost": mean([row["hybrid"] / row["aggressive"] for row in chosen]),
        "greedy_over_optimum_cost_most": max(row["greedy"] / row["optimum"] for row in chosen),
        "proven_percent": 100 * mean([row["proven"] for row in chosen]),
        "choose_milliseconds_most": max(row["milliseconds"] for row in chosen),
        "load": busy,
    }
    return Report("schedule", describe_machine(), asdict(settings), rows, summary)


def _over(one: float, other: float) -> float:
    """A latency may be 0: if both are, there is nothing to gain; otherwise it counts as a thousandth of an update."""
    return 1.0 if one == other else one / max(other, 1e-3)


def _point(policy: str, queries: int, rate: int, settings: ScheduleSettings) -> Row:
    seeds = range(settings.seed, settings.seed + settings.repeat)
    ran = [play(policy, queries, rate, seed, settings.speed, settings.seconds) for seed in seeds]
    return {
        "policy": policy,
        "rate": rate,
        "queries": queries * len(FIELDS),
        "throughput": mean([one.throughput for one in ran]),
        "latency": mean([one.latency for one in ran]),
        "latest": max(one.latest for one in ran),
        "tasks": mean([one.tasks for one in ran]),
        "runs": mean([one.runs for one in ran]),
        "shared_runs": mean([one.shared_runs for one in ran]),
    }


def _choices(queries: int, seed: int) -> list[Row]:
    """What the modelled schedules of each group cost, at the low rate."""
    cost, rows = Counters(LOW), []
    for group in groups(draw(queries, seed)):
        tasks = sub_groups(group)
        begun = perf_counter()
        optimum = shorten(tasks, cost, tolerance=0)
        taken = perf_counter() - begun
        modelled = ("aggressive", "conservative", "hybrid")
        rows.append(
            {
                **{p: schedule_cost(POLICIES[p].split(group, cost), cost) for p in modelled},
                "optimum": optimum.cost,
                "greedy": schedule_cost(merged(tasks, merge_greedily(tasks, cost)), cost),
                "proven": optimum.optimal,
                "milliseconds": 1000 * taken,
            }
        )
    return rows


SCHEDULE = Benchmark(
    name="schedule",
    about="how many answers six policies give in the same time, how late, and what hybrid's periods cost",
    summary=SUMMARY,
    settings=ScheduleSettings,
    run=run,
)
