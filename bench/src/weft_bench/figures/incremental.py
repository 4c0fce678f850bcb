"""Paper 1, figure 11: what Incremental Weave Share saves in comparisons, and how far its plans drift."""

from __future__ import annotations

from fractions import Fraction

from weft.model import Workload
from weft.optimizer import TECHNIQUES, Cost
from weft_bench.benchmark import Row, Say
from weft_bench.figures.figure import Claim, Figure, Scale, mean
from weft_bench.figures.sharing import draw, plan
from weft_bench.incremental_planning import add, begin

TOLERANCES = (0, 5, 10, 20, 30, 50, None)
"""In percent; None never replans."""

RATE = 30
"""Rows per second: few enough that there are many trees to choose from, and so to choose wrongly."""


def rows(scale: Scale, say: Say) -> list[Row]:
    """Queries join one at a time; the drift is the mean over all of them, against planning from scratch at each."""
    (first, last) = scale.of((20, 60), (50, 300))
    cost = Cost(TECHNIQUES["panes"])
    results: dict[int | None, list[tuple[float, int, int]]] = {tolerance: [] for tolerance in TOLERANCES}
    for seed in scale.seeds:
        pool = list(draw(seed, last))
        scratch = {n: plan("weave_share", Workload(pool[:n]), RATE).cost for n in range(first + 1, last + 1)}
        for tolerance in TOLERANCES:
            current, errors, replanned = begin(pool[:first], Fraction(RATE), cost), [], 0
            for number in range(first + 1, last + 1):
                current = add(
                    current, [pool[number - 1]], cost, None if tolerance is None else Fraction(tolerance, 100)
                )
                errors.append(float(current.plan.cost / scratch[number]) - 1)
                replanned += current.replanned
            results[tolerance].append((mean(errors), current.compared, replanned))
            say(f"tolerance {label(tolerance)}  error {mean(errors):.1%}  {current.compared:,} comparisons")
    return [
        {
            "series": "Incremental Weave Share",
            "tolerance": label(tolerance),
            "comparisons": mean([compared for _, compared, _ in runs]),
            "relative_error_percent": 100 * mean([error for error, _, _ in runs]),
            "planned_anew": mean([times for _, _, times in runs]),
        }
        for tolerance, runs in results.items()
    ]


def label(tolerance: int | None) -> str:
    return "infinity" if tolerance is None else f"{tolerance} %"


def claims(rows: list[Row]) -> list[Claim]:
    errors = [row["relative_error_percent"] for row in rows]
    work = [row["comparisons"] for row in rows]
    within = [row["relative_error_percent"] <= float(row["tolerance"][:-2]) + 1e-9 for row in rows[:-1]]
    measured = ", ".join(f"{row['tolerance']}: {row['relative_error_percent']:.1f} %" for row in rows)
    return [
        Claim("a larger tolerance, a larger error", measured, errors == sorted(errors)),
        Claim(
            "a larger tolerance, less overhead",
            f"{work[0]:,.0f} to {work[-1]:,.0f} comparisons",
            work == sorted(work, reverse=True),
        ),
        Claim("the error is always within the tolerance", measured, all(within)),
    ]


INCREMENTAL = (
    Figure(
        "11",
        "Incremental Weave Share: drift against overhead, by tolerance",
        "paper 1, figure 11",
        "comparisons",
        "relative_error_percent",
        rows,
        claims,
        log_x=True,
    ),
)
