"""How fast phantoms are chosen, and how far the choice is from the optimum where that is known."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import inf
from random import Random
from statistics import mean, median
from time import perf_counter, process_time

from weft.optimizer.phantoms import (
    FeedingGraph,
    Flows,
    GroupStatistics,
    ProbeCosts,
    Relation,
    allocate,
    choose,
    configurations,
)
from weft_bench.benchmark import Benchmark, Report, Row, Say, integer, option
from weft_bench.machine import describe_machine, load

NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
REPEATS = 3
"""Runs of each choice, of which the shortest counts: other processes use the machine too."""

SUMMARY = {
    "workloads": "sets of group-bys that phantoms were chosen for",
    "candidates_most": "most phantoms that were considered",
    "choose_milliseconds_median": "GC with SL, counting the candidates and estimating their groups",
    "choose_milliseconds_most": "the same at most; the bar is 100",
    "choose_cpu_milliseconds_most": "the same in processor time, which others on the machine disturb less",
    "gain_mean": "cost without phantoms over the cost with them, on average",
    "small_workloads": "sets of 4 group-bys, where the optimum is known",
    "gc_over_epes_mean": "cost of GC with SL over the optimum, on average",
    "gc_over_epes_most": "the same at most; the bar for the paper's groups is 1.2",
    "sl_over_es_mean": "cost of a configuration with SL over the best division of memory, on average; the bar is 1.05",
    "sl_over_es_most": "the same at most",
    "load": "load average at the start: above the number of cores, other processes affect the times",
}


@dataclass(frozen=True, slots=True)
class PhantomsSettings:
    queries: int = option(30, "Group-bys.")
    attributes: int = option(8, "Attributes that they are drawn from, 26 at most.")
    workloads: int = option(20, "Sets of group-bys.", quick=4)
    small: int = option(60, "Sets of 4 group-bys over 4 attributes.", quick=6)
    seed: int = option(1, "Of the first set.", parse=integer)


def draw_queries(random: Random, number: int, attributes: int) -> list[Relation]:
    """Different ones, of one to four attributes."""
    names = NAMES[:attributes]
    number = min(number, 2**attributes - 1)
    queries: set[Relation] = set()
    widest = 4 if attributes > 5 else attributes
    while len(queries) < number:
        queries.add(frozenset(random.sample(names, random.randint(1, widest))))
    return sorted(queries, key=sorted)


def draw_statistics(random: Random, attributes: int) -> GroupStatistics:
    """Counts of single attributes, and of all together a few times the largest of these, as in the paper's trace; rows
    that come in flows or not; tables that cost something to empty or not."""
    counts = {frozenset(name): float(random.randint(20, 2000)) for name in NAMES[:attributes]}
    counts[frozenset(NAMES[:attributes])] = random.uniform(2, 10) * max(counts.values())
    return GroupStatistics(counts, random.choice((Flows(), Flows((30, 2, 1)))), random.choice((inf, 1e6)))


def run(settings: PhantomsSettings, say: Say) -> Report:
    busy = load()
    rows = [_timed(settings, seed) for seed in range(settings.seed, settings.seed + settings.workloads)]
    say(f"{len(rows)} sets of {settings.queries} group-bys")
    small: list[Row] = []
    for seed in range(settings.seed, settings.seed + settings.small):
        small.append(_against_all(seed))
        say(f"{small[-1]['configuration']}  {small[-1]['gc_over_epes']:.3f} of the optimum")
    times = [row["milliseconds"] for row in rows]
    summary = {
        "workloads": len(rows),
        "candidates_most": max(row["candidates"] for row in rows),
        "choose_milliseconds_median": median(times),
        "choose_milliseconds_most": max(times),
        "choose_cpu_milliseconds_most": max(row["cpu_milliseconds"] for row in rows),
        "gain_mean": mean(row["gain"] for row in rows),
        "small_workloads": len(small),
        "gc_over_epes_mean": mean(row["gc_over_epes"] for row in small),
        "gc_over_epes_most": max(row["gc_over_epes"] for row in small),
        "sl_over_es_mean": mean(row["sl_over_es"] for row in small),
        "sl_over_es_most": max(row["sl_over_es_most"] for row in small),
        "load": busy,
    }
    return Report("phantoms", describe_machine(), asdict(settings), [*rows, *small], summary)


def _timed(settings: PhantomsSettings, seed: int) -> Row:
    random = Random(seed)
    attributes = min(settings.attributes, len(NAMES))
    queries = draw_queries(random, settings.queries, attributes)
    statistics, memory = draw_statistics(random, attributes), float(random.choice((100_000, 400_000, 1_600_000)))
    taken, worked = [], []
    for _ in range(REPEATS):
        begun, begun_work = perf_counter(), process_time()
        choice = choose(queries, statistics, memory)
        taken.append(perf_counter() - begun)
        worked.append(process_time() - begun_work)
    return {
        "seed": seed,
        "queries": len(queries),
        "candidates": len(FeedingGraph.of(queries).phantoms),
        "phantoms": len(choice.configuration.phantoms),
        "memory": memory,
        "milliseconds": 1000 * min(taken),
        "cpu_milliseconds": 1000 * min(worked),
        "gain": choice.unshared / choice.cost,
    }


def _against_all(seed: int) -> Row:
    """Emptying tables costs nothing here: then the best division is known to a hundredth of the memory."""
    random = Random(seed)
    queries = draw_queries(random, 4, 4)
    statistics = replace(draw_statistics(random, 4), rows=inf)
    memory = float(random.choice((20_000, 40_000, 100_000)))
    choice, best = (choose(queries, statistics, memory, chooser=chooser) for chooser in ("gc", "epes"))
    some = configurations(queries)[::5]
    ratios = [
        allocate(c, statistics, memory, ProbeCosts()).cost / allocate(c, statistics, memory, ProbeCosts(), "es").cost
        for c in some
    ]
    return {
        "seed": seed,
        "memory": memory,
        "configuration": str(choice.configuration),
        "optimum": str(best.configuration),
        "gc_over_epes": choice.cost / best.cost,
        "sl_over_es": mean(ratios),
        "sl_over_es_most": max(ratios),
    }


PHANTOMS_BENCH = Benchmark(
    name="phantoms",
    about="how fast phantoms are chosen for many group-bys, and how far from the optimum for few",
    summary=SUMMARY,
    settings=PhantomsSettings,
    run=run,
)
