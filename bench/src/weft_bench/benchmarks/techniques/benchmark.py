"""The techniques of final aggregation: throughput, latency and memory, as in the dissertation's figures 16 to 29.

Times are CPU seconds of the one thread that works, the best of several runs, so that a busy machine disturbs less.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from weft_bench.benchmark import Benchmark, Report, Row, Say
from weft_bench.benchmarks.techniques.settings import TechniqueSettings
from weft_bench.benchmarks.techniques.show import FIGURES, show, write_page
from weft_bench.benchmarks.techniques.summary import SUMMARY, summarise
from weft_bench.machine import describe_machine


def run(settings: TechniqueSettings, say: Say) -> Report:
    # Modules that compile kernels are imported only when needed.
    from weft_bench.benchmarks.techniques.latency_and_memory import count_rows
    from weft_bench.benchmarks.techniques.measure import ONCE, PARTS, check_answers
    from weft_bench.benchmarks.techniques.setup import Bench, read_stream

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
"""The fields that identify a measurement."""


def fastest(rows: Iterable[Row]) -> list[Row]:
    """The best of several rounds for each measurement."""
    best: dict[tuple[object, ...], Row] = {}
    for row in rows:
        what = tuple(map(row.get, MEASUREMENT))
        if what not in best or row["slides_per_second"] > best[what]["slides_per_second"]:
            best[what] = row
    return list(best.values())


TECHNIQUES_BENCH = Benchmark(
    name="techniques",
    about="every technique of final aggregation: slides per second, latency, memory, operations",
    summary=SUMMARY,
    settings=TechniqueSettings,
    run=run,
    show=show,
)
