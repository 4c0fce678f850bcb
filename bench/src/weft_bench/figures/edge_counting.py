"""Dissertation, figures 34 to 39 and table 6: planning time by the way in which edges are counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import combinations
from math import lcm
from time import process_time
from typing import Any

from weft.model import ACQ, Edges, WeftError
from weft.optimizer.edge_counting import Density, bit_set, f1
from weft.optimizer.paper_workloads import SECOND, Shape, generate
from weft_bench.benchmark import Row, Say
from weft_bench.figures.figure import NOTE, Claim, Figure, Scale, mean
from weft_bench.figures.sharing import plan


class OutOfTime(Exception):
    """A rival has used up the seconds that it may take."""


@dataclass(frozen=True, slots=True)
class CountingExperiment:
    """A line of the dissertation's table 5, with the result in its table 6."""

    number: int
    figure: str
    parameter: str
    shape: Shape
    quick: Sequence[Any]
    full: Sequence[Any]
    bit_set_reached: float
    ratios: tuple[int, int]
    """How many times faster F1 was than the bit set, on average and at most."""
    table_percent: int
    """By how much the GCD table was faster than F1 without."""
    quick_number: int = 60

    def shapes(self, scale: Scale) -> list[tuple[Any, Shape]]:
        shape = replace(self.shape, number=min(self.shape.number, self.quick_number)) if scale.quick else self.shape
        return [(v, replace(shape, **{self.parameter: v})) for v in scale.of(self.quick, self.full)]


_normal = partial(Shape, slides="normal")
_diverse = partial(Shape, slides="diverse")
EXPERIMENTS = (
    CountingExperiment(
        1, "35", "number", _normal(1, 1000, Fraction(1, 500), 0.5, 10), (20, 50, 100), (100, 250, 550, 1000),
        550, (350, 790), 28, quick_number=1,
    ),
    CountingExperiment(
        2, "36", "maximum_slide", _diverse(1000, 100, Fraction(1), 3, 100), (100, 400, 1000), (100, 800, 3000, 10_000),
        800, (2200, 10_000), 18,
    ),
    CountingExperiment(
        3, "37", "rate", _normal(1000, 100, Fraction(1), 1, 1000), (100, 900, 10_000),
        (100, 400, 900, 10_000, 100_000, 1_000_000), 900, (3800, 16_000), 19, quick_number=40,
    ),
    CountingExperiment(
        4, "38", "skew", _normal(50, 500, Fraction(1, 10), 0, 100), (0, 2.25, 10), (0, 1, 2.25, 5, 10, 50, 100),
        2.25, (14_000, 60_000), 18,
    ),
    CountingExperiment(
        5, "39", "maximum_overlap", _diverse(1000, 600, Fraction(1), 3, 100), (100, 40, 1), (100, 70, 40, 20, 1),
        40, (5600, 16_000), 26,
    ),
)  # fmt: skip


def weave(queries: Sequence[ACQ], rate: Fraction, density: Density, seconds: float) -> int:
    """Weave Share with a table of gains, as the dissertation runs it; the trees. One time unit is a second."""
    until = process_time() + seconds

    def tree(edges: Edges, overlap: Fraction) -> tuple[Edges, Fraction, Fraction]:
        if process_time() > until:
            raise OutOfTime
        return edges, overlap, density(edges) * overlap

    windows = [query.window for query in queries]
    trees = {
        i: tree(Edges.of_classes((s // SECOND, h // SECOND) for s, h in w.classes), Fraction(w.length, w.slide))
        for i, w in enumerate(windows)
    }

    def gain(i: int, j: int) -> Fraction:
        (left, some, one), (right, more, other) = trees[i], trees[j]
        return rate + one + other - tree(left | right, some + more)[2]

    gains = {pair: gain(*pair) for pair in combinations(trees, 2)}
    while gains:
        (i, j), best = max(gains.items(), key=lambda entry: entry[1])
        if best <= 0:
            break
        (left, some, _), (right, more, _) = trees[i], trees.pop(j)
        trees[i] = tree(left | right, some + more)
        gains = {pair: g for pair, g in gains.items() if not {i, j} & set(pair)}
        gains |= {(i, k): gain(i, k) for k in trees if k != i}
    return len(trees)


def counters() -> dict[str, Density]:
    return {"bit set": bit_set.density, "F1": f1.density, "F1 + table": partial(f1.density, divisor=f1.GcdTable())}


def timed(run: Callable[[], int]) -> dict[str, Any]:
    begun = process_time()
    try:
        trees: int | None = run()
        ended = None
    except OutOfTime:
        trees, ended = None, "out of time"
    except WeftError as error:
        trees, ended = None, type(error).__name__
    seconds = process_time() - begun
    return {"seconds": seconds if ended is None else None, "trees": trees, "ended": ended}


def experiment(which: CountingExperiment, scale: Scale, say: Say) -> list[Row]:
    rows: list[Row] = []
    ways = counters()
    for point, shape in which.shapes(scale):
        workload = generate(replace(shape, seed=scale.seed))
        for name, density in ways.items():
            row = timed(partial(weave, workload, shape.rate, density, scale.budget))
            rows.append({"series": name, which.parameter: float(point), **row})
        rows.append({"series": "weft", which.parameter: float(point), **timed(partial(_weft, workload, shape))})
        times = [f"{row['series']} {row['ended'] or format(row['seconds'], '.2f') + ' s'}" for row in rows[-4:]]
        say(f"{which.parameter} {point}  {'  '.join(times)}")
    return rows


def _weft(workload: Any, shape: Shape) -> int:
    return len(plan("weave_share", workload, float(shape.rate)).trees)


def ratios(rows: Sequence[Row], one: str, other: str, x: str) -> list[float]:
    """Of times, at the points where both finished."""
    times = {(row["series"], row[x]): row["seconds"] for row in rows if row["seconds"]}
    return [times[one, at] / times[other, at] for series, at in times if series == one and (other, at) in times]


def experiment_claims(which: CountingExperiment, rows: list[Row]) -> list[Claim]:
    x = which.parameter
    slower, table = ratios(rows, "bit set", "F1", x), ratios(rows, "F1", "F1 + table", x)
    weft = ratios(rows, "F1", "weft", x)
    ends = {s: [row[x] for row in rows if row["series"] == s and row["seconds"]] for s in ("bit set", "F1", "weft")}
    reached = "; ".join(f"{s}: {', '.join(f'{v:g}' for v in points) or 'none'}" for s, points in ends.items())
    points = {row[x] for row in rows}
    # Beyond the longest setting that was run, nothing is known.
    as_there = set(ends["F1"]) == points > set(ends["bit set"]) if max(points) >= which.bit_set_reached else None
    ours = f"{mean(slower):.1f} on average, {max(slower):.1f} at most" if slower else "no point where both finish"
    average, most = which.ratios
    return [
        Claim(f"the bit set dies at {which.bit_set_reached:g}, F1 never does", f"finished {reached}", as_there),
        Claim(
            f"F1 is {average:,} times faster than the bit set, {most:,} at most",
            ours,
            mean(slower) >= average / 10 if slower else None,
        ),
        Claim(
            f"the table of divisors saves {which.table_percent} %",
            f"{1 - 1 / mean(table):.0%}" if table else "no point where both finish",
            mean(table) > 1 if table else None,
        ),
        Claim(NOTE, f"weft is {mean(weft):.1f} times faster than F1" if weft else "F1 does not finish", None),
    ]


def operations(scale: Scale, say: Say) -> list[Row]:
    """Figure 34, by the formulas: the sum of LCM / slide against 2**(n-1) * n."""
    rows: list[Row] = []
    for count in range(2, 31):
        period = lcm(*range(1, count + 1))
        marks, terms = sum(period // slide for slide in range(1, count + 1)), 2 ** (count - 1) * count
        rows.append({"series": "bit set", "queries": count, "operations": marks, "ratio": marks / terms})
        rows.append({"series": "F1", "queries": count, "operations": terms, "ratio": marks / terms})
    return rows


def operation_claims(rows: list[Row]) -> list[Claim]:
    first = next((row["queries"] for row in rows if row["ratio"] > 1), None)
    ours = f"{rows[-1]['ratio']:,.0f} times as many at {rows[-1]['queries']}; more from {first} queries on"
    return [Claim("the bit set's operations grow as e**n, F1's as 2**n", ours, rows[-1]["ratio"] > 1)]


def table_6(scale: Scale, say: Say) -> list[Row]:
    some = replace(scale, budget=min(scale.budget, 1.0)) if scale.quick else scale
    lines: list[Row] = []
    for which in EXPERIMENTS:
        x = which.parameter
        rows = experiment(replace(which, quick=which.quick[:2]), some, say)
        slower, table = ratios(rows, "bit set", "F1", x), ratios(rows, "F1", "F1 + table", x)
        finished = {s: [r[x] for r in rows if r["series"] == s and r["seconds"]] for s in ("bit set", "F1")}
        lines.append(
            {
                "series": "ours",
                "experiment": which.number,
                "parameter": x,
                "bit_set_finished": [f"{v:g}" for v in finished["bit set"]],
                "f1_finished": [f"{v:g}" for v in finished["F1"]],
                "average": mean(slower) if slower else None,
                "most": max(slower) if slower else None,
                "paper_average": which.ratios[0],
                "paper_most": which.ratios[1],
                "table_percent": 100 * (1 - 1 / mean(table)) if table else None,
                "paper_table_percent": which.table_percent,
            }
        )
    return lines


def table_6_claims(rows: list[Row]) -> list[Claim]:
    averaged = [row for row in rows if row["average"] is not None]
    ours = "; ".join(f"{row['parameter']}: {row['average']:.1f}" for row in averaged)
    return [Claim("bit set over F1: 350 to 14,000 times on average", ours, all(r["average"] >= 350 for r in averaged))]


def _figure(which: CountingExperiment) -> Figure:
    return Figure(
        which.figure,
        f"Planning time by {which.parameter.replace('_', ' ')}",
        f"dissertation, figure {which.figure}",
        which.parameter,
        "seconds",
        partial(experiment, which),
        partial(experiment_claims, which),
        log_x=which.parameter != "skew",
        log_y=True,
    )


COUNTING = (
    Figure(
        "34",
        "Operations to count edges, by number of slides",
        "dissertation, figure 34",
        "queries",
        "operations",
        operations,
        operation_claims,
        log_y=True,
    ),
    *map(_figure, EXPERIMENTS),
    Figure(
        "table6",
        "Bit set against F1",
        "dissertation, table 6",
        "experiment",
        "average",
        table_6,
        table_6_claims,
        drawn=False,
    ),
)
