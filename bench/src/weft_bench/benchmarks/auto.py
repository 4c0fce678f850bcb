"""`auto` against Weave Share on many seeded workloads, and both against exhaustive search on small ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from random import Random
from time import process_time
from typing import TYPE_CHECKING, Any

from weft_bench.benchmark import Benchmark, Report, Row, Say, integer, option
from weft_bench.machine import describe_machine, load

if TYPE_CHECKING:
    from rich.console import Console

    from weft.model import Workload
    from weft.optimizer.paper_workloads import Shape

SMALL_NUMBER = 10
"""Queries that exhaustive search takes a fraction of a second for."""

SUMMARY = {
    "workloads": "that auto and Weave Share both planned",
    "worse": "plans of auto that cost more than Weave Share's or TriWeave's: there must be none",
    "mean_gain_percent": "by how much auto's plans are cheaper than Weave Share's, on average",
    "greatest_gain_percent": "the same at most",
    "mean_gain_own_percent": "the same where auto too gives each tree a pass of its own: what better trees alone bring",
    "greatest_gain_own_percent": "the same at most",
    "mean_gain_tri_percent": "by how much auto's plans are cheaper than TriWeave's, on average",
    "greatest_gain_tri_percent": "the same at most",
    "auto_seconds": "a plan of auto, on average",
    "small_workloads": f"of {SMALL_NUMBER} queries, where the optimum is known",
    "auto_optima_percent": "of those, how many auto solves to the optimum: it looks at all plans",
    "search_optima_percent": "the same for the search that auto begins with more queries, without looking at all plans",
    "search_gap_percent": "by how much that search's plans are above the optimum, on average",
    "weave_share_optima_percent": "the same for Weave Share, against the best plan with a pass per tree",
    "weave_share_gap_percent": "by how much Weave Share's plans are above that, on average",
    "weave_share_worst_percent": "the same at most; paper 1 saw 3 %",
}


@dataclass(frozen=True, slots=True)
class AutoSettings:
    workloads: int = option(1000, "Workloads on which auto meets Weave Share.", quick=25)
    small: int = option(200, f"Workloads of {SMALL_NUMBER} queries on which both meet exhaustive search.", quick=30)
    most: int = option(60, "Queries of a workload at most.", quick=40)
    seed: int = option(1, "Of the first workload.", parse=integer)


def run(settings: AutoSettings, say: Say) -> Report:
    busy = load()
    rows = [_meet(settings.seed + i, settings.most) for i in _told(settings.workloads, "against Weave Share", say)]
    small = [_against_all(settings.seed + i) for i in _told(settings.small, "against all plans", say)]
    report = {**summarise(rows), **summarise_small(small)}
    return Report("auto", describe_machine() | {"load": busy}, asdict(settings), [*rows, *small], report)


def _told(count: int, what: str, say: Say) -> Iterator[int]:
    for number in range(count):
        if number % max(1, count // 10) == 0:
            say(f"{number:,} of {count:,} workloads {what}")
        yield number


def _workload(seed: int, number: int) -> tuple[Workload, Shape]:
    """Slides that divide one another, any, or primes; and a rate that leaves something to choose."""
    from weft.optimizer.paper_workloads import SECOND, Shape, generate

    draw = Random(seed)
    slides, longest = draw.choice((("factors", 3600), ("factors", 720), ("normal", 24), ("diverse", 30)))
    shape = Shape(
        number=number,
        maximum_slide=longest,
        rate=Fraction(draw.choice((1, 3, 10, 30, 100, 300, 1000))),
        skew=draw.choice((0, 0.6, 1)),
        maximum_overlap=draw.choice((1, 10, 50, 200)),
        slides=slides,
        seed=seed,
        unit=draw.choice((SECOND, SECOND // 10)),
    )
    return generate(shape), shape


def _meet(seed: int, most: int) -> Row:
    from weft.optimizer import STRATEGIES, TECHNIQUES, Cost, Statistics
    from weft.optimizer.strategies.auto import search

    workload, shape = _workload(seed, Random(seed).randint(12, most))
    statistics, cost = Statistics(shape.rate), Cost(TECHNIQUES["panes"])
    woven, tri = (STRATEGIES[name](workload, statistics, cost) for name in ("weave_share", "tri_weave"))
    begun = process_time()
    auto = STRATEGIES["auto"](workload, statistics, cost)
    seconds = process_time() - begun
    own = search(composite=False)(workload, statistics, cost)
    return {
        "against": "weave_share",
        "queries": len(workload),
        "slides": shape.slides,
        "rate": float(shape.rate),
        "weave_share": float(woven.cost),
        "tri_weave": float(tri.cost),
        "auto": float(auto.cost),
        "gain_percent": _percent(woven.cost, auto.cost),
        "gain_own_percent": _percent(woven.cost, own.cost),
        "gain_tri_percent": _percent(tri.cost, auto.cost),
        "worse": auto.cost > min(woven.cost, tri.cost) or own.cost > woven.cost,
        "seconds": seconds,
    }


def _percent(before: Fraction, after: Fraction) -> float:
    return float(100 * (1 - after / before)) if before else 0.0


def _against_all(seed: int) -> Row:
    """On a small workload, where looking at all plans tells what the best one costs."""
    from weft.optimizer import STRATEGIES, TECHNIQUES, Cost, Statistics
    from weft.optimizer.strategies.auto import search

    workload, shape = _workload(seed, SMALL_NUMBER)
    statistics, cost = Statistics(shape.rate), Cost(TECHNIQUES["panes"])
    best, auto, woven = (STRATEGIES[n](workload, statistics, cost).cost for n in ("exhaustive", "auto", "weave_share"))
    best_own = search(small=SMALL_NUMBER, composite=False)(workload, statistics, cost).cost
    searched = search(small=0)(workload, statistics, cost).cost
    return {
        "against": "exhaustive",
        "queries": len(workload),
        "slides": shape.slides,
        "rate": float(shape.rate),
        "weave_share": float(woven),
        "auto": float(auto),
        "auto_optimal": auto == best,
        "search_optimal": searched == best,
        "search_gap_percent": _above(searched, best),
        "weave_share_optimal": woven == best_own,
        "weave_share_gap_percent": _above(woven, best_own),
    }


def _above(cost: Fraction, best: Fraction) -> float:
    return float(100 * (cost / best - 1)) if best else 0.0


def summarise(rows: Sequence[Row]) -> dict[str, Any]:
    summary: dict[str, Any] = {"workloads": len(rows), "worse": sum(row["worse"] for row in rows)}
    for name in ("gain", "gain_own", "gain_tri"):
        values = [row[f"{name}_percent"] for row in rows]
        summary[f"mean_{name}_percent"] = sum(values) / len(values)
        summary[f"greatest_{name}_percent"] = max(values)
    return summary | {"auto_seconds": sum(row["seconds"] for row in rows) / len(rows)}


def summarise_small(rows: Sequence[Row]) -> dict[str, Any]:
    summary: dict[str, Any] = {"small_workloads": len(rows)}
    for name in ("auto", "search", "weave_share"):
        summary[f"{name}_optima_percent"] = 100 * sum(row[f"{name}_optimal"] for row in rows) / len(rows)
    for name in ("search", "weave_share"):
        summary[f"{name}_gap_percent"] = sum(row[f"{name}_gap_percent"] for row in rows) / len(rows)
    return summary | {"weave_share_worst_percent": max(row["weave_share_gap_percent"] for row in rows)}


def show(report: Report, console: Console) -> None:
    """The summary only: a thousand workloads are for --json."""
    from weft_bench.output.tables import show_rows

    show_rows([{"": name, "value": value, "what": SUMMARY[name]} for name, value in report.summary.items()], console)


AUTO = Benchmark(
    name="auto",
    about="plans of auto against Weave Share's on seeded workloads, and both against the optimum of small ones",
    summary=SUMMARY,
    settings=AutoSettings,
    run=run,
    show=show,
)
