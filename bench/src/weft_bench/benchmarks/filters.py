"""Hundreds of filters over thirty windows: woven, as one Spark job with FILTER (WHERE ...), and a Spark job each."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft_bench.benchmark import Benchmark, Report, Row, Say, integer, numbers, option
from weft_bench.data.queries import spread
from weft_bench.machine import describe_machine, load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RATE = 5_000
"""Rows per second of event time."""

WARM_ROWS = 20_000
CHECKED = 5
"""Queries whose answers are compared with plain Spark's."""

SUMMARY = {
    "over_separate": "time of a Spark query for each filter, one after the other, over weft's; the bar is 20",
    "over_one_job": "time of one Spark job with an aggregate FILTER (WHERE ...) for each filter over weft's",
    "growth": "weft's time with most filters over that with fewest",
    "filters_growth": "how many times more filters these are: growth should be smaller",
    "separate_measured": "Spark queries that were timed; the others count with their mean",
    "one_job_measured": "windows that the one Spark job was timed for, with all of their filters; the others likewise",
    "signature_bits": "bits that the signatures of most filters take; filters on one column share a number",
    "answers_checked": "whether some queries gave as many answers as plain Spark",
    "load": "load average at the start: above the number of cores, other processes affect the times",
}


@dataclass(frozen=True, slots=True)
class FiltersSettings:
    filters: tuple[int, ...] = option(
        (50, 100, 200), "Filters; one point each.", quick=(20, 40), parse=numbers, metavar="N,N,..."
    )
    windows: int = option(30, "Different windows.", quick=6)
    rows: int = option(5_000_000, "Rows.", quick=100_000)
    keys: int = option(10, "Different group keys.")
    budget: int = option(60, "Seconds that each rival may take; a running query is finished.", quick=3)
    repeat: int = option(2, "Turns that weft takes; the shortest counts.", quick=1)
    seed: int = option(1, "Of rows and queries.", parse=integer)


@dataclass(frozen=True, slots=True)
class FilterQuery:
    """One filter and one window, which overlap neighbours `overlap` times."""

    name: str
    where: str
    slide: int
    overlap: int

    @property
    def window(self) -> str:
        return f"window(ts, '{self.slide * self.overlap} seconds', '{self.slide} seconds')"

    @property
    def sql(self) -> str:
        return (
            f"SELECT k, window.start AS begin, count(*) AS n, sum(price) AS s FROM events WHERE {self.where} "
            f"GROUP BY k, {self.window}"
        )


def make_filters(count: int, seed: int) -> list[str]:
    """Different ones, as alerts have them: thresholds, ranges, kinds with a threshold, and places."""
    draw = random.Random(seed)
    filters: dict[str, None] = {}
    while len(filters) < count:
        limit = draw.randint(1, 999)
        shape = len(filters) % 5
        if shape < 2:
            filters[f"price > {limit}"] = None
        elif shape == 2:
            filters[f"size >= {limit}"] = None
        elif shape == 3:
            filters[f"kind = 'kind{draw.randint(0, 9)}' AND price > {limit // 100 * 100}"] = None
        else:
            filters[f"price BETWEEN {limit} AND {limit + draw.randint(1, 200)}"] = None
    return list(filters)


def make_queries(filters: int, windows: int, seed: int) -> list[FilterQuery]:
    draw = random.Random(seed)
    shapes: dict[tuple[int, int], None] = {}
    while len(shapes) < windows:
        shapes[5 * draw.randint(1, 12), draw.randint(1, 8)] = None
    chosen = list(shapes)
    return [FilterQuery(f"q{i}", where, *chosen[i % windows]) for i, where in enumerate(make_filters(filters, seed))]


def run(settings: FiltersSettings, say: Say) -> Report:
    from weft.spark import local_session

    spark, busy = local_session(), load()
    folder = Path(tempfile.mkdtemp(prefix="weft-bench-"))
    rows: list[Row] = []
    checked = True
    try:
        say(f"making {settings.rows:,} rows")
        table, small = (_make_rows(spark, folder / str(n), n, settings) for n in (settings.rows, WARM_ROWS))
        for count in settings.filters:
            queries = make_queries(count, settings.windows, settings.seed)
            say(f"{count} filters")
            checked = _warm_up(small, queries) and checked
            rows += _take_turns(table, small, queries, settings, last=count == settings.filters[-1], say=say)
    finally:
        spark.catalog.dropTempView("events")
        shutil.rmtree(folder, ignore_errors=True)
    summary = {**summarise(rows), "answers_checked": checked, "load": busy}
    return Report("filters", describe_machine(), asdict(settings), rows, summary)


def _make_rows(spark: SparkSession, folder: Path, rows: int, settings: FiltersSettings) -> DataFrame:
    from weft.calibration.measure.events import BEGIN

    def drawn(what: int, values: int) -> str:
        return f"pmod(xxhash64(id, {settings.seed * 10 + what}L), {values})"

    spark.range(0, rows, 1, 4).selectExpr(
        f"timestamp_micros({BEGIN} + id * 1000000 div {RATE}) AS ts",
        f"concat('k', {drawn(0, settings.keys)}) AS k",
        f"concat('kind', {drawn(1, 10)}) AS kind",
        f"{drawn(2, 100_000)} / 100.0D AS price",
        f"CAST({drawn(3, 1000)} AS INT) AS size",
    ).write.parquet(str(folder))
    return spark.read.parquet(str(folder))


def _warm_up(small: DataFrame, queries: Sequence[FilterQuery]) -> bool:
    """Run all engines over few rows. Returns whether some queries have as many answers as in plain Spark."""
    answers: dict[str, int] = {}

    def count(batch: int, tables: Any) -> None:
        answers.update({name: answers.get(name, 0) + table.num_rows for name, table in tables.items()})

    _weave(small, queries).run_bounded(count)
    _one_job(small, queries, budget=0)
    small.createOrReplaceTempView("events")
    some = queries[:: -(-len(queries) // CHECKED)]
    return all(answers.get(q.name, 0) == small.sparkSession.sql(q.sql).count() for q in some)


def _take_turns(
    table: DataFrame, small: DataFrame, queries: Sequence[FilterQuery], settings: FiltersSettings, last: bool, say: Say
) -> list[Row]:
    rows: list[Row] = []

    def row(engine: str, seconds: float, measured: int, **rest: Any) -> None:
        say(f"  {engine}  {seconds:.1f} s")
        rows.append({"filters": len(queries), "engine": engine, "seconds": seconds, "measured": measured, **rest})

    for _ in range(settings.repeat):
        begun = time.perf_counter()
        job = _weave(table, queries)
        metrics = job.run_bounded("noop")
        bits = sum(feed.signature.width for feed in job.physical.feeds)
        row("weft", time.perf_counter() - begun, len(queries), answers=metrics.answers, bits=bits)
    if last:
        windows = len({query.window for query in queries})
        seconds_taken = _one_job(table, queries, settings.budget)
        row("one_job", sum(seconds_taken) / len(seconds_taken) * windows, len(seconds_taken))
        seconds_taken = _separate(table, small, queries, settings.budget)
        row("separate", sum(seconds_taken) / len(seconds_taken) * len(queries), len(seconds_taken))
    return rows


def _weave(table: DataFrame, queries: Sequence[FilterQuery]) -> Any:
    from weft.spark import weave

    return weave(table, [f"CREATE VIEW {q.name} AS {q.sql}" for q in queries], rate=RATE)


def _one_job(table: DataFrame, queries: Sequence[FilterQuery], budget: float) -> list[float]:
    """A grouping for each window, with two aggregates for each of its filters: seconds per window, of as many as the
    budget lets. Branches of a union share nothing, so each is run by itself."""
    table.createOrReplaceTempView("events")
    windows: dict[str, list[FilterQuery]] = {}
    for query in sorted(queries, key=lambda q: (q.overlap, q.slide, q.name)):
        windows.setdefault(query.window, []).append(query)
    seconds_taken: list[float] = []
    for window, some in spread(list(windows.items())):
        calls = ", ".join(
            f"count(*) FILTER (WHERE {q.where}) AS {q.name}_n, sum(price) FILTER (WHERE {q.where}) AS {q.name}_s"
            for q in some
        )
        text = f"SELECT k, window.start AS begin, {calls} FROM events GROUP BY k, {window}"
        begun = time.perf_counter()
        table.sparkSession.sql(text).write.format("noop").mode("overwrite").save()
        seconds_taken.append(time.perf_counter() - begun)
        if sum(seconds_taken) >= budget:
            break
    return seconds_taken


def _separate(table: DataFrame, small: DataFrame, queries: Sequence[FilterQuery], budget: float) -> list[float]:
    """Seconds of queries spread over the overlaps, which are what a query costs, until the budget is used up."""
    seconds_taken: list[float] = []
    for query in spread(sorted(queries, key=lambda q: (q.overlap, q.slide, q.name))):
        if sum(seconds_taken) >= budget:
            break
        for rows in (small, table):
            rows.createOrReplaceTempView("events")
            begun = time.perf_counter()
            rows.sparkSession.sql(query.sql).write.format("noop").mode("overwrite").save()
        seconds_taken.append(time.perf_counter() - begun)
    return seconds_taken


def summarise(rows: Sequence[Row]) -> dict[str, Any]:
    most, fewest = (choose(row["filters"] for row in rows) for choose in (max, min))

    def fastest(engine: str, filters: int) -> float:
        return min(float(r["seconds"]) for r in rows if (r["engine"], r["filters"]) == (engine, filters))

    woven = fastest("weft", most)
    return {
        "over_separate": fastest("separate", most) / woven,
        "over_one_job": fastest("one_job", most) / woven,
        "growth": woven / fastest("weft", fewest),
        "filters_growth": most / fewest,
        "separate_measured": next(row["measured"] for row in rows if row["engine"] == "separate"),
        "one_job_measured": next(row["measured"] for row in rows if row["engine"] == "one_job"),
        "signature_bits": max(row.get("bits", 0) for row in rows),
    }


FILTERS = Benchmark(
    name="filters",
    about="hundreds of filters over thirty windows, beside one Spark job and a Spark query for each",
    summary=SUMMARY,
    settings=FiltersSettings,
    run=run,
)
