"""How fast plans are made: counting edges, merging trees, and workloads that are large."""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from fractions import Fraction
from math import prod
from multiprocessing.connection import Connection
from random import Random
from typing import Any

from weft.model import ACQ, Call, EdgeClass, Edges, Window, Workload
from weft.optimizer import TECHNIQUES, Cost, optimize
from weft.optimizer.edge_counting import bit_set, edge_rate, exact, f1
from weft.optimizer.merge.greedy import Weaving
from weft.optimizer.merge.part import equal_edges
from weft.optimizer.paper_workloads import Shape, generate
from weft_bench.benchmark import Benchmark, Report, Row, Say, integer, option
from weft_bench.machine import describe_machine, load
from weft_bench.rivals.planners import merge_pair_by_pair, prototype_density

SECOND = 1_000_000
COUNTS = {(40, 1_000): 10, (100, 1_000): 3, (40, 86_400): 5, (100, 86_400): 1}
"""Windows and longest slide, and how many times as many sets of them are drawn: what the prototype takes for a set of
forty lies between one and three hundred milliseconds, so three sets say little."""
F1_SLIDES = (
    (97, 101), (47, 53, 59), (97, 101, 103), (173, 179, 181), (239, 241, 251), (499, 503, 509), (983, 991, 997),
)  # fmt: skip
"""Primes, so that no two have a common divisor; composite slides of ten thousand to a billion marks."""
F1_TIMES = 20
"""F1 takes microseconds: one run would time the clock."""
TABLE_6 = (350, 14_000)
PEOPLE = sorted(
    {n * unit for unit in (1, 60) for n in (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30)}
    | {n * 3600 for n in (1, 2, 3, 4, 6, 8, 12, 24)}
    | {90, 2700, 5400}
)
"""Slides in seconds: factors and multiples of a second, a minute and an hour, to a day."""

SUMMARY = {
    **{f"count_ratio_{n}_to_{slide}":
       f"prototype's time over weft's: {n} random windows with fragments, slides to {slide:,}"
       for n, slide in COUNTS},
    "count_ratio_least": "the least of these",
    "f1_over_bit_set_mean": "time of the bit set over F1's, mean over composite slides of ten thousand marks and more",
    "f1_over_bit_set_least": "the least, for the shortest composite slide",
    "f1_over_bit_set_most": "the greatest, mostly for the longest",
    "f1_table_6_marks": f"the first composite slide from which F1 is {TABLE_6[0]} times as fast, where table 6 begins",
    "lazy_same_merges": "whether lazy merging merges what merging pair by pair does",
    "lazy_counts_ratio": "pairs that merging pair by pair counts over those that lazy merging counts",
    "million_seconds": "planning the queries of dissertation table 5, experiment 1, at their greatest number",
    "million_peak_bytes": "memory of that process, the queries themselves in it",
    "experiments_finished": "how many of the five experiments of table 5 were planned at their greatest setting",
    "people_seconds": "Weave Share of different windows with slides that people use, offsets, and indivisible ranges",
    "random_seconds": "Weave Share of windows with random slides to 86,400 s at a low rate: many trees, counted",
    "random_width": "what that plan costs at most over what it costs at least, less 1: 0 where all edges were counted",
    "random_one_tree_seconds": "the same at 10,000 rows/s: few large trees, whose edges are enclosed",
    "random_one_tree_width": "and how wide the interval of its cost is",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PlanSettings:
    seeds: int = option(3, "Random sets of the largest kind that counters are timed on; of smaller ones more.", quick=2)
    counts: int = option(4, "How many of the four kinds of sets are counted.", quick=2)
    f1: int = option(len(F1_SLIDES), "How many composite slides F1 and the bit set meet on.", quick=5)
    merged: int = option(60, "Windows that are merged pair by pair.", quick=25)
    queries: int = option(1_000_000, "Queries of experiment 1.", quick=20_000)
    others: int = option(1_000, "Queries of the other experiments, but 50 of the fourth.", quick=100)
    people: int = option(5_000, "Windows with slides that people use.", quick=400)
    random: int = option(1_000, "Windows with random slides.", quick=100)
    rate: str = option("0.05", "Rows per second for those.", parse=str, metavar="RATE")
    budget: int = option(120, "Seconds after which a plan is given up and its row says cut.", quick=15)
    seed: int = option(1, "Of everything drawn.", parse=integer)


def run(settings: PlanSettings, say: Say) -> Report:
    exact.density(Edges.of_classes(random_classes(20, 1_000, 0)))  # compiled and loaded before anything is timed
    rows: list[Row] = []
    summary: dict[str, Any] = dict.fromkeys(SUMMARY)
    for measure in (_counters, _f1, _lazy, _workloads):
        for row in measure(settings, summary, say):
            rows.append({**row, "load": load()})
    ratios = [summary[name] for name in SUMMARY if name.startswith("count_ratio_") and summary[name]]
    summary["count_ratio_least"] = min(ratios, default=None)
    return Report("plan", describe_machine(), asdict(settings), rows, summary)


def random_classes(windows: int, longest: int, seed: int) -> list[EdgeClass]:
    """A begin at 0 and an end anywhere, for each window."""
    random = Random(seed)
    slides = [random.randint(2, longest) for _ in range(windows)]
    return [(slide, shift) for slide in slides for shift in (0, random.randrange(1, slide))]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


def _counters(settings: PlanSettings, summary: dict[str, Any], say: Say) -> Iterable[Row]:
    for (windows, longest), times in list(COUNTS.items())[: settings.counts]:
        theirs = ours = 0.0
        say(f"counting {windows} windows with slides to {longest:,}, {times * settings.seeds} sets")
        for seed in range(settings.seed, settings.seed + times * settings.seeds):
            classes = random_classes(windows, longest, seed)
            exact.forget()
            own, counted = timed(lambda c=classes: exact.density(Edges.of_classes(c)))  # type: ignore[misc]
            rival, expected = timed(lambda c=classes: prototype_density(c))  # type: ignore[misc]
            theirs, ours = theirs + rival, ours + own
            yield {"what": "count", "windows": windows, "longest": longest, "seed": seed, "weft_seconds": own,
                   "rival_seconds": rival, "equal": counted == expected}  # fmt: skip
        summary[f"count_ratio_{windows}_to_{longest}"] = theirs / ours


def _f1(settings: PlanSettings, summary: dict[str, Any], say: Say) -> Iterable[Row]:
    ratios = []
    for slides in F1_SLIDES[: settings.f1]:
        edges = Edges.of_classes((slide, 0) for slide in slides)
        say(f"F1 and the bit set over {edges.period:,} marks")
        own, (counted, *_) = timed(lambda e=edges: [f1.density(e) for _ in range(F1_TIMES)])  # type: ignore[misc]
        rival, expected = timed(lambda e=edges: bit_set.marked(e.classes, e.period))  # type: ignore[misc]
        ratios.append(rival / (own / F1_TIMES))
        yield {"what": "f1", "windows": len(slides), "longest": max(slides), "marks": edges.period,
               "weft_seconds": own / F1_TIMES, "rival_seconds": rival, "ratio": ratios[-1],
               "equal": counted * edges.period == expected}  # fmt: skip
    summary["f1_over_bit_set_mean"] = sum(ratios) / len(ratios)
    summary["f1_over_bit_set_least"], summary["f1_over_bit_set_most"] = min(ratios), max(ratios)
    summary["f1_table_6_marks"] = next((prod(s) for s, r in zip(F1_SLIDES, ratios) if r >= TABLE_6[0]), None)


def _lazy(settings: PlanSettings, summary: dict[str, Any], say: Say) -> Iterable[Row]:
    say(f"merging {settings.merged} windows, pair by pair and lazily")
    shape = Shape(number=settings.merged, maximum_slide=600, skew=0.3, maximum_overlap=10, seed=settings.seed)
    windows, saving, cost = [q.window for q in generate(shape)], Fraction(1), Cost(TECHNIQUES["panes"])

    def lazily() -> Weaving:
        weaving = Weaving(equal_edges(list(enumerate(generate(shape))), cost), saving, cost, above=0)
        while (merge := weaving.best()) is not None:
            weaving.merge(merge)
        return weaving

    own, weaving = timed(lazily)
    rival, (expected, counted) = timed(lambda: merge_pair_by_pair(windows, saving, edge_rate))
    merged = sorted([i for i, _ in part.queries] for part in weaving.parts.values())
    summary["lazy_same_merges"] = merged == sorted(expected)
    summary["lazy_counts_ratio"] = counted / max(1, weaving.counted)
    yield {"what": "merge", "windows": len(windows), "weft_seconds": own, "rival_seconds": rival,
           "equal": merged == sorted(expected), "weft_counted": weaving.counted, "rival_counted": counted,
           "trees": len(merged)}  # fmt: skip


def _workloads(settings: PlanSettings, summary: dict[str, Any], say: Say) -> Iterable[Row]:
    n, seed = settings.others, settings.seed
    drawn = {"seed": seed}
    experiments = (
        (Shape(settings.queries, 1_000, Fraction("0.002"), 0.5, 10, "normal", **drawn)),
        (Shape(n, 10_000, Fraction(1), 3, 100, "diverse", **drawn)),
        (Shape(n, 100, Fraction(1_000_000), 1, 1_000, "normal", **drawn)),
        (Shape(50, 500, Fraction("0.1"), 100, 100, "normal", **drawn)),
        (Shape(n, 600, Fraction(1), 3, 1, "diverse", **drawn)),
    )
    finished = 0
    for number, shape in enumerate(experiments, 1):
        say(f"experiment {number} of table 5: {shape.number:,} queries")
        row = planned(lambda s=shape: generate(s), shape.rate, settings.budget)  # type: ignore[misc]
        finished += not row["cut"]
        if number == 1:
            summary["million_seconds"], summary["million_peak_bytes"] = row["weft_seconds"], row["peak_bytes"]
        yield {"what": f"experiment {number}", "windows": shape.number, "longest": shape.maximum_slide, **row}
    summary["experiments_finished"] = finished
    say(f"{settings.people:,} windows with slides that people use")
    row = planned(lambda: people(settings.people, seed), Fraction(1_000), settings.budget)
    summary["people_seconds"] = row["weft_seconds"]
    yield {"what": "people", "windows": settings.people, "longest": max(PEOPLE), **row}
    for name, rate in (("random", Fraction(settings.rate)), ("random_one_tree", Fraction(10_000))):
        say(f"{settings.random:,} windows with random slides at {float(rate):,g} rows/s")
        row = planned(lambda: random_windows(settings.random, seed), rate, settings.budget)
        summary[f"{name}_seconds"], summary[f"{name}_width"] = row["weft_seconds"], row["width"]
        yield {"what": name.replace("_", " "), "windows": settings.random, "longest": 86_400, **row}


def planned(draw: Callable[[], Workload], rate: Fraction, budget: float) -> Row:
    """Plan in a process of its own, so that its memory is its own and it can be given up."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_plan, args=(draw, rate, theirs))
    process.start()
    theirs.close()
    row: Row = {"weft_seconds": None, "peak_bytes": None, "trees": None, "cost": None, "width": None, "cut": True}
    # Drawing a million queries takes its time too, and is not what is measured.
    if ours.poll(budget + 60):
        try:
            row = ours.recv()
        except EOFError:
            row["failed"] = True
    process.kill()
    process.join()
    return row


def _plan(draw: Callable[[], Workload], rate: Fraction, report: Connection) -> None:
    workload = draw()
    seconds, plan = timed(lambda: optimize(workload, rate, "weave_share", "panes"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    width = float((plan.cost_high or plan.cost) / plan.cost - 1)
    report.send({"weft_seconds": seconds, "peak_bytes": peak, "trees": len(plan.trees), "cost": float(plan.cost),
                 "width": width, "cut": False})  # fmt: skip


def people(count: int, seed: int) -> Workload:
    """Different windows; every third has an offset, and most ranges are no multiples of the slide."""
    random = Random(seed)
    windows: dict[Window, None] = {}
    while len(windows) < count:
        slide = random.choice(PEOPLE)
        offset = random.choice([0, 0, random.randrange(slide)])
        windows[Window(round(slide * random.uniform(1, 20)) * SECOND, slide * SECOND, offset * SECOND)] = None
    return named(windows)


def random_windows(count: int, seed: int) -> Workload:
    random = Random(seed)
    slides = [random.randint(1, 86_400) for _ in range(count)]
    return named(Window(round(slide * random.uniform(1, 20)) * SECOND, slide * SECOND) for slide in slides)


def named(windows: Iterable[Window]) -> Workload:
    call = (Call("max", ("price",)),)
    return Workload(ACQ(f"q{i}", window, call, ()) for i, window in enumerate(windows, 1))


PLAN = Benchmark(
    name="plan",
    about="how fast plans are made: counting edges, merging trees, a million queries",
    summary=SUMMARY,
    settings=PlanSettings,
    run=run,
)
