"""Paper 4, figures 5 to 8: throughput and latency of six policies, at two rates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

from weft_bench.benchmark import Row, Say
from weft_bench.figures.figure import Claim, Claims, Figure, Scale, mean
from weft_bench.figures.schedule.setting import FIELDS, HIGH, LOW, PAPER, play

Points = dict[tuple[str, int], Row]


def compared(rate: int, scale: Scale, say: Say) -> list[Row]:
    rows: list[Row] = []
    for queries in scale.of((5, 20), (5, 10, 20, 30)):
        for policy in PAPER:
            rows.append(dict(_point(policy, queries, rate, tuple(scale.seeds))))
        say(f"{queries * len(FIELDS)} queries at {rate} rows/s")
    return rows


@lru_cache(maxsize=256)
def _point(policy: str, queries: int, rate: int, seeds: tuple[int, ...]) -> Row:
    """Two figures draw the same runs."""
    ran = [play(policy, queries, rate, seed) for seed in seeds]
    return {
        "series": PAPER[policy],
        "queries": queries * len(FIELDS),
        "throughput": mean([run.throughput for run in ran]),
        "latency": mean([run.latency for run in ran]),
        "latest": max(run.latest for run in ran),
        "tasks": mean([run.tasks for run in ran]),
        "shared_runs_percent": 100 * mean([run.shared_runs / run.runs for run in ran]),
    }


def points(rows: Sequence[Row]) -> tuple[Points, list[int]]:
    return {(row["series"], row["queries"]): row for row in rows}, sorted({row["queries"] for row in rows})


def ratios(rows: Sequence[Row], y: str, one: str, other: str) -> list[float]:
    by_policy, sizes = points(rows)
    return [by_policy[one, n][y] / by_policy[other, n][y] if by_policy[other, n][y] else 1.0 for n in sizes]


def measured(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values) + " times"


def throughput_low(rows: list[Row]) -> list[Claim]:
    by_policy, sizes = points(rows)
    hybrid, tasks = ratios(rows, "throughput", "HS", "CS"), ratios(rows, "tasks", "HS", "CS")
    late = ratios(rows, "throughput", "H-LP", "HS")
    last = [max(("No-S", "CS"), key=lambda s: by_policy[s, n]["throughput"]) for n in sizes]
    others = [min(by_policy[s, n]["throughput"] for s in ("HS", "AS", "H-LS", "H-LP")) for n in sizes]
    aggressive = ratios(rows, "throughput", "AS", "HS")
    return [
        Claim("No-S and CS have the lowest throughput", f"{', '.join(last)} next to the others",
              all(by_policy[s, n]["throughput"] < o for s, n, o in zip(last, sizes, others))),
        Claim("HS easily doubles the throughput of CS", measured(hybrid), min(hybrid) >= 2),
        Claim("HS often needs half the tasks of CS", measured(tasks), min(tasks) <= 0.55),
        Claim("H-LS and H-LP gain more, above all with many queries", f"H-LP over HS {measured(late)}",
              late[-1] > 1 and late[-1] >= late[0]),
        Claim("AS has a very good throughput", f"{measured(aggressive)} that of HS", min(aggressive) >= 1),
    ]  # fmt: skip


def latency_low(rows: list[Row]) -> list[Claim]:
    by_policy, sizes = points(rows)
    gains, least = ratios(rows, "latency", "CS", "HS"), by_policy["CS", sizes[0]]["latency"]
    aggressive = [by_policy["AS", n]["latency"] / max(by_policy["CS", n]["latency"], 1e-9) for n in sizes]
    return [
        Claim("No-S and CS are overloaded even by 40 queries", f"latency {least:.2f} (CS)", least > 0),
        Claim("No-S is particularly bad", f"{measured(ratios(rows, 'latency', 'No-S', 'CS'))} CS",
              all(by_policy["No-S", n]["latency"] > by_policy["CS", n]["latency"] for n in sizes)),
        Claim("HS has a tenth of CS's latency", f"CS has {measured(gains)} that of HS", min(gains) >= 10),
        Claim("AS has a poor latency", f"{measured(aggressive)} that of CS", min(aggressive) > 1),
    ]  # fmt: skip


def throughput_high(rows: list[Row]) -> list[Claim]:
    hybrid, late = ratios(rows, "throughput", "HS", "CS"), ratios(rows, "throughput", "H-LP", "HS")
    aggressive = ratios(rows, "throughput", "AS", "H-LP")
    return [
        Claim("H-LP more than doubles the throughput of HS", measured(late), min(late) >= 2),
        Claim("HS gains less over CS than at the low rate", measured(hybrid), None),
        Claim("H-LP is the clear winner", f"AS has {measured(aggressive)} the throughput of H-LP", max(aggressive) < 1),
    ]


def latency_high(rows: list[Row]) -> list[Claim]:
    by_policy, sizes = points(rows)
    best = [min((s for s in PAPER.values()), key=lambda s: by_policy[s, n]["latency"]) for n in sizes]
    bad = [by_policy["No-S", n]["latency"] for n in sizes]
    return [
        Claim("No-S has an extremely high latency", ", ".join(f"{b:.0f}" for b in bad) + " updates",
              all(b == max(by_policy[s, n]["latency"] for s in PAPER.values()) for b, n in zip(bad, sizes))),
        Claim("H-LP is the clear winner", f"{', '.join(best)} has the lowest latency", set(best) == {"H-LP"}),
        Claim("H-LP has a lower latency than HS", f"{measured(ratios(rows, 'latency', 'H-LP', 'HS'))} that of HS",
              max(ratios(rows, "latency", "H-LP", "HS")) < 1),
    ]  # fmt: skip


def a_figure(number: int, rate: int, y: str, claims: Claims) -> Figure:
    title = f"{y.capitalize()} of six policies at {rate} rows/s"
    return Figure(
        f"schedule-{number}", title, f"paper 4, figure {number}", "queries", y, partial(compared, rate), claims
    )


SCHEDULES = (
    a_figure(5, LOW, "throughput", throughput_low),
    a_figure(6, LOW, "latency", latency_low),
    a_figure(7, HIGH, "throughput", throughput_high),
    a_figure(8, HIGH, "latency", latency_high),
)
