"""Dissertation, figures 42 to 48, tables 12 and 13: what plans cost for each technique of final aggregation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from weft.optimizer import STRATEGIES, TECHNIQUES, Cost, Statistics
from weft.optimizer.paper_workloads import Shape, generate
from weft_bench.benchmark import Row, Say
from weft_bench.figures.figure import Claim, Figure, Scale, mean

COMPARED = ("panes", "flat_fat", "flat_fit", "slick_deque_inv", "slick_deque_non_inv")
OPTIMIZERS = ("weave_share", "tri_weave")

MIDDLE = Shape(number=100, maximum_slide=1000, maximum_overlap=10_000, rate=Fraction(1), skew=0)
"""Table 13: the point that all experiments of table 12 go through."""


@dataclass(frozen=True, slots=True)
class TechniqueExperiment:
    """A line of table 12, and what the text says: how far SlickDeque and TriWeave lead."""

    number: int
    figure: str
    parameter: str
    quick: Sequence[Any]
    full: Sequence[Any]
    over_panes: int
    tri_percent: int
    trend: str


EXPERIMENTS = (
    TechniqueExperiment(1, "42", "number", (1, 10, 50), (1, 10, 100, 1000, 10_000), 5_000, 8, "more queries cost more"),
    TechniqueExperiment(
        2,
        "43",
        "maximum_slide",
        (10, 1000, 100_000),
        (10, 100, 1000, 10_000, 100_000),
        4_300,
        2,
        "longer slides cost less",
    ),
    TechniqueExperiment(
        3,
        "44",
        "maximum_overlap",
        (100, 10_000, 1_000_000),
        (100, 1000, 10_000, 100_000, 1_000_000),
        270_000,
        2,
        "more overlap costs more with Panes and FlatFAT only",
    ),
    TechniqueExperiment(
        4, "45", "rate", (0.01, 1, 100), (0.01, 0.1, 1, 10, 100), 3_000, 18, "a higher rate hardly costs Panes more"
    ),
    TechniqueExperiment(5, "46", "skew", (-1, 0, 1), (-1, -0.5, 0, 0.5, 1), 4_200, 5, "a higher skew costs less"),
)


def shape_at(parameter: str, at: Any, scale: Scale, seed: int) -> Shape:
    number = 40 if scale.quick else MIDDLE.number
    changes: dict[str, Any] = {"number": number, "seed": seed}
    changes[parameter] = Fraction(str(at)) if parameter == "rate" else at
    return replace(MIDDLE, **changes)


def cost_of(shape: Shape, optimizer: str, technique: str) -> tuple[float, int]:
    plan = STRATEGIES[optimizer](generate(shape), Statistics(shape.rate), Cost(TECHNIQUES[technique]))
    return float(plan.cost), len(plan.trees)


def experiment(which: TechniqueExperiment, scale: Scale, say: Say) -> list[Row]:
    rows: list[Row] = []
    for at in scale.of(which.quick, which.full):
        for optimizer in OPTIMIZERS:
            for technique in COMPARED:
                shapes = [shape_at(which.parameter, at, scale, seed) for seed in scale.seeds]
                plans = [cost_of(shape, optimizer, technique) for shape in shapes]
                row = {"series": technique, "optimizer": optimizer, which.parameter: float(at)}
                rows.append(row | {"cost": mean([c for c, _ in plans]), "trees": mean([t for _, t in plans])})
        costs = [f"{row['series']} {row['cost']:,.1f}" for row in rows[-len(COMPARED) :]]
        say(f"{which.parameter} {at}, {OPTIMIZERS[-1]}:  {'  '.join(costs)}")
    return rows


def slick_over(rows: Sequence[Row], rival: str, x: str) -> float:
    """At most, how many times less the better SlickDeque costs than the rival."""
    return max(
        float(row["cost"] / other["cost"])
        for row in rows
        for other in rows
        if row["series"] == rival
        and other["series"].startswith("slick_deque")
        and (row["optimizer"], row[x]) == (other["optimizer"], other[x])
    )


def tri_saves(rows: Sequence[Row], x: str) -> float:
    """By how much TriWeave's plans are cheaper, on average, in percent."""
    own = {(row["series"], row[x]): row["cost"] for row in rows if row["optimizer"] == "weave_share"}
    shares = [1 - row["cost"] / own[row["series"], row[x]] for row in rows if row["optimizer"] == "tri_weave"]
    return 100 * mean(shares)


def follows(which: TechniqueExperiment, rows: Sequence[Row]) -> bool:
    """Whether the costs of the experiment go as the text says."""
    ends: dict[str, float] = {}
    for technique in COMPARED:
        line = [r["cost"] for r in rows if r["series"] == technique and r["optimizer"] == "weave_share"]
        ends[technique] = line[-1] / line[0]
    if which.parameter == "number":
        return all(ratio > 1 for ratio in ends.values())
    if which.parameter in ("maximum_slide", "skew"):
        return all(ratio < 1 for ratio in ends.values())
    if which.parameter == "maximum_overlap":
        return ends["panes"] > 10 and ends["flat_fit"] < 2 and ends["slick_deque_inv"] < 2
    return ends["panes"] < 2 < ends["slick_deque_inv"]


def claims(which: TechniqueExperiment, rows: list[Row]) -> list[Claim]:
    x = which.parameter
    panes, fit, tri = slick_over(rows, "panes", x), slick_over(rows, "flat_fit", x), tri_saves(rows, x)
    lines = [(t, [r["cost"] for r in rows if r["series"] == t and r["optimizer"] == "weave_share"]) for t in COMPARED]
    measured = "; ".join(f"{t}: {line[0]:,.1f} to {line[-1]:,.1f}" for t, line in lines)
    near = panes * 10 >= which.over_panes
    return [
        Claim(which.trend, measured, follows(which, rows)),
        Claim(f"SlickDeque up to {which.over_panes:,} times below Panes", f"{panes:,.0f}", near),
        Claim("SlickDeque below FlatFIT, the closest", f"up to {fit:.1f} times", fit > 1),
        Claim(f"TriWeave {which.tri_percent} % below Weave Share", f"{tri:.0f} %", tri >= 0),
    ]


def table_12(scale: Scale, say: Say) -> list[Row]:
    lines = []
    for which in EXPERIMENTS:
        rows = experiment(which, replace(scale, repeat=1) if scale.quick else scale, say)
        x = which.parameter
        lines.append(
            {
                "series": "ours",
                "experiment": which.number,
                "parameter": x,
                "slick_deque_over_panes": slick_over(rows, "panes", x),
                "paper_over_panes": which.over_panes,
                "slick_deque_over_flat_fit": slick_over(rows, "flat_fit", x),
                "tri_weave_saves_percent": tri_saves(rows, x),
                "paper_tri_weave_percent": which.tri_percent,
            }
        )
    return lines


def table_12_claims(rows: list[Row]) -> list[Claim]:
    panes = "; ".join(f"{row['parameter']}: {row['slick_deque_over_panes']:,.0f}" for row in rows)
    tri = "; ".join(f"{row['parameter']}: {row['tri_weave_saves_percent']:.0f} %" for row in rows)
    greatest = max(rows, key=lambda row: row["slick_deque_over_panes"])["parameter"]
    return [
        Claim("SlickDeque's lead over Panes is greatest for overlap", panes, greatest == "maximum_overlap"),
        Claim("TriWeave's plans are slightly cheaper", tri, all(row["tri_weave_saves_percent"] >= 0 for row in rows)),
    ]


def middle(optimizers: Sequence[str], scale: Scale, say: Say) -> list[Row]:
    """The estimated half of figures 47 and 48: throughput as 1 / cost."""
    rows: list[Row] = []
    for optimizer in optimizers:
        for number, technique in enumerate(COMPARED, 1):
            costs = [cost_of(replace(MIDDLE, seed=seed), optimizer, technique) for seed in scale.seeds]
            cost = mean([c for c, _ in costs])
            row = {"series": optimizer, "technique": number, "name": technique, "cost": cost}
            rows.append(row | {"trees": mean([t for _, t in costs]), "estimated_throughput": 1 / cost})
            say(f"{optimizer}  {technique}  {cost:,.1f} ops/s")
    return rows


def middle_claims(rows: list[Row]) -> list[Claim]:
    order = sorted(rows, key=lambda row: row["cost"])
    measured = ", ".join(f"{row['name']} {row['cost']:,.1f}" for row in order)
    best = order[0]["name"].startswith("slick_deque")
    return [Claim("SlickDeque gives the best plans, Panes the worst", measured, best and order[-1]["name"] == "panes")]


def _figure(which: TechniqueExperiment) -> Figure:
    return Figure(
        which.figure,
        f"Plan cost by {which.parameter.replace('_', ' ')}",
        f"dissertation, figure {which.figure}",
        which.parameter,
        "cost",
        partial(experiment, which),
        partial(claims, which),
        log_x=which.parameter != "skew",
        log_y=True,
        panels=lambda row: str(row["optimizer"]),
    )


def _point(name: str, source: str, optimizers: Sequence[str]) -> Figure:
    title = f"Estimated throughput, {' and '.join(optimizers)}"
    rows = partial(middle, optimizers)
    return Figure(name, title, source, "technique", "estimated_throughput", rows, middle_claims, log_y=True)


TECHNIQUE_FIGURES = (
    *map(_figure, EXPERIMENTS),
    _point("47", "dissertation, figure 47, left half", ("weave_share",)),
    _point("48", "dissertation, figure 48, left half", ("tri_weave",)),
    Figure(
        "table12",
        "Techniques and optimizers",
        "dissertation, table 12",
        "experiment",
        "cost",
        table_12,
        table_12_claims,
        drawn=False,
    ),
    _point("table13", "dissertation, table 13", OPTIMIZERS),
)
