"""The techniques of final aggregation: throughput, latency and memory, as in the dissertation's figures 16 to 29.

Times are CPU seconds of the one thread that works, the best of several runs, so that a busy machine disturbs less.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from weft_bench.benchmark import BadSetting, Benchmark, Report, Row, Say, flag, numbers, option, whole
from weft_bench.benchmarks.techniques.show import FIGURES, show, write_page
from weft_bench.benchmarks.techniques.summary import SUMMARY, summarise
from weft_bench.machine import describe_machine


def exponents(text: str) -> tuple[int, ...]:
    """
    >>> exponents("4,0,22")
    (0, 4, 22)
    """
    found = tuple(sorted({whole(part.strip()) for part in text.split(",")}))
    if not 0 <= found[0] <= found[-1] <= 24:
        raise BadSetting(f"windows are powers of two, from 0 to 24, got {text}")
    return found


@dataclass(frozen=True, slots=True)
class TechniqueSettings:
    windows: tuple[int, ...] = option(
        tuple(range(0, 23, 2)), "Windows, as powers of two.", quick=(0, 4, 10, 16), parse=exponents, metavar="P,..."
    )
    multi: tuple[int, ...] = option(
        (0, 2, 4, 6, 8, 10), "Windows with all ranges at once.", quick=(0, 4, 8), parse=exponents, metavar="P,..."
    )
    ranges: int = option(64, "Ranges at once over one stream.")
    groups: tuple[int, ...] = option(
        (10, 100, 1_000, 10_000, 100_000), "Groups at once.", quick=(10, 100_000), parse=numbers, metavar="N,..."
    )
    slides: int = option(1 << 20, "Slides a measurement, and four windows at least.", quick=1 << 19)
    budget: int = option(80, "Milliseconds for the runs of a measurement, of which the best counts.", quick=40)
    rounds: int = option(3, "Times that every rate is measured: what else runs slows a processor for seconds.", quick=1)
    latencies: int = option(1_000_000, "Steps whose time is taken.", quick=200_000)
    seed: int = option(1, "Of the values.", parse=whole)
    data: str = option("", "A file of the DEBS 2012 challenge to take the values from.", parse=str, metavar="FILE")
    page: str = option("", "Draw the figures to this file.", parse=str, metavar="FILE")
    count: bool = flag("Count operations too, and show them beside table 4.")


def run(settings: TechniqueSettings, say: Say) -> Report:
    # What compiles is not imported before it is asked for.
    from weft_bench.benchmarks.techniques.measure import ONCE, PARTS, Bench, check_answers, count_rows, read_stream

    bench = Bench(settings, read_stream(settings), say)
    say("checking all techniques against recomputation; the first time they are compiled")
    checked = check_answers(bench)
    rows = fastest(row for _ in range(settings.rounds) for part in PARTS for row in part(bench))
    for part in (*ONCE, count_rows) if settings.count else ONCE:
        rows += part(bench)
    report = Report("techniques", describe_machine(), asdict(settings), rows, summarise(rows, checked))
    if settings.page:
        write_page(report, Path(settings.page))
        say(f"drew {len(FIGURES)} figures to {settings.page}")
    return report


MEASUREMENT = ("figure", "technique", "aggregate", "form", "window", "ranges", "groups")
"""What tells one from another."""


def fastest(rows: Iterable[Row]) -> list[Row]:
    """Each measurement once, where several rounds have made it."""
    found: dict[tuple[object, ...], Row] = {}
    for row in rows:
        what = tuple(map(row.get, MEASUREMENT))
        if what not in found or row["slides_per_second"] > found[what]["slides_per_second"]:
            found[what] = row
    return list(found.values())


TECHNIQUES_BENCH = Benchmark(
    name="techniques",
    about="every technique of final aggregation: slides a second, latency, memory, operations",
    summary=SUMMARY,
    settings=TechniqueSettings,
    run=run,
    show=show,
)
