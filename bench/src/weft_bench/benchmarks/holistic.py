"""A hundred percentiles, distinct counts and most common values: woven, and as separate queries of plain Spark.

Exact ones are beside Spark's exact ones, and sketches beside Spark's own approximate functions.
"""

from __future__ import annotations

import math
import random
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from weft_bench.benchmark import Benchmark, Report, Row, Say, integer, option
from weft_bench.data.queries import BenchQuery, sample_order
from weft_bench.machine import PeakMemory, describe_machine, load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RATE = 3_700
"""Rows per second of event time, as in the other comparison with plain Spark."""

FORMS = {
    "exact": ("percentile(v, 0.95)", "count(DISTINCT CAST(v * 50 AS INT))", "mode(CAST(v AS INT), true)", "median(v)"),
    "approximate": (
        "percentile_approx(v, 0.95, 1000)",
        "approx_count_distinct(CAST(v * 50 AS INT))",
        "approx_top_k(CAST(v AS INT), 5)",
        "percentile_approx(v, 0.5, 1000)",
    ),
}
"""Of as many values as rows, of five thousand, and of a hundred."""

CHECKED_QUERIES = 4
SUMMARY = {
    "exact_ratio": "rows per second of weft over those of plain Spark's separate queries, exact; the bar is 20",
    "approximate_ratio": "the same for sketches over Spark's approximate functions; the bar is 20",
    "exact_rows_per_second": "weft, all queries, exact",
    "approximate_rows_per_second": "weft, all queries, approximate",
    "exact_synopsis_bytes": "bytes of values in weft's partials, in all buckets",
    "approximate_synopsis_bytes": "the same for sketches",
    "peak_memory_bytes": "peak memory of the driver (Python and JVM) and the Python workers in a run of weft",
    "answers_checked": "whether a query of each aggregate gave the rows of spark.sql where sketches are exact",
}


@dataclass(frozen=True, slots=True)
class HolisticSettings:
    queries: int = option(100, "How many queries of each form.", quick=8)
    rows: int = option(1_000_000, "Rows of the table.", quick=30_000)
    keys: int = option(1_000, "Different group keys.", quick=100)
    budget: int = option(45, "Seconds that plain Spark may take with each form; the rest is scaled.", quick=1)
    checked: int = option(40_000, "Rows that the answers are compared on.", quick=5_000)
    seed: int = option(1, "Of rows and queries.", parse=integer)


def run(settings: HolisticSettings, say: Say) -> Report:
    from weft.calibration.measure.events import make_events
    from weft.spark import local_session

    queries_by_form = {form: make_queries(form, settings.queries, settings.seed) for form in FORMS}
    # Compiling the kernels that plans need takes as long as starting Spark, so both run at the same time.
    planning = Thread(target=_plan, args=(queries_by_form["exact"],))
    planning.start()
    spark = local_session()
    folder = Path(tempfile.mkdtemp(prefix="weft-bench-"))
    rows: list[Row] = []
    checked = True
    try:
        say(f"making {settings.rows:,} rows with {settings.keys:,} keys")
        made = {"rows": settings.rows, "keys": settings.keys, "rate": RATE, "files": 8, "seed": settings.seed}
        events = make_events(spark, folder / "events", **made)
        small = events.table(spark, settings.checked).persist()
        planning.join()
        for form, queries in queries_by_form.items():
            say(f"comparing {form} answers on {settings.checked:,} rows")
            # Not counted: a first run includes the compilation of kernels and of the JVM's code.
            checked = _same_answers(small, queries, say) and checked
            rows.append(_weft(events.table(spark), queries, form, settings.rows, say))
            rows.append(_separate(events.table(spark), queries, form, settings, say))
    finally:
        spark.catalog.dropTempView("events")
        shutil.rmtree(folder, ignore_errors=True)
    summary = {**summarise(rows), "answers_checked": checked}
    return Report("holistic", describe_machine(), asdict(settings), rows, summary)


def _plan(queries: Sequence[BenchQuery]) -> None:
    from weft.api import optimize

    optimize([q.sql for q in queries], rate=RATE)


def make_queries(form: str, count: int, seed: int) -> list[BenchQuery]:
    """Slides of 1 to 60 seconds, overlap 2 to 20, as in the other comparison."""
    draw, calls = random.Random(seed), FORMS[form]
    return [
        BenchQuery(f"q{i + 1}", calls[i % len(calls)], draw.randint(1, 60), draw.randint(2, 20)) for i in range(count)
    ]


def _weft(table: DataFrame, queries: Sequence[BenchQuery], form: str, rows: int, say: Say) -> Row:
    """The time includes planning and every answer, computed and discarded."""
    from weft.spark import weave

    busy = load()
    with PeakMemory() as memory:
        begun = time.perf_counter()
        job = weave(table, [q.sql for q in queries], rate=RATE)
        metrics = job.run_bounded("noop")
        seconds = time.perf_counter() - begun
    row = _row("weft", form, (len(queries), len(queries)), rows, seconds, metrics.answers, busy)
    say(f"  weft  {form}  {seconds:.1f} s  {metrics.answers:,} answers")
    return row | {"synopsis_bytes": metrics.synopsis_bytes} | memory.as_row()


def _separate(table: DataFrame, queries: Sequence[BenchQuery], form: str, settings: HolisticSettings, say: Say) -> Row:
    """Each query alone until the budget is used up, but at least one per aggregate."""
    table.createOrReplaceTempView("events")
    busy, seconds, answers, measured = load(), 0.0, 0, 0
    for query in in_turn(queries):
        if measured >= len(FORMS[form]) and seconds >= settings.budget:
            break
        begun = time.perf_counter()
        answers += _answered(table.sparkSession.sql(query.sql))
        taken = time.perf_counter() - begun
        say(f"  plain Spark  {query.aggregate}  overlap {query.overlap}  {taken:.1f} s")
        seconds, measured = seconds + taken, measured + 1
    return _row("spark", form, (len(queries), measured), settings.rows, seconds, answers, busy)


def in_turn(queries: Sequence[BenchQuery]) -> list[BenchQuery]:
    """Aggregates in turn, each with queries spread over the overlaps, which determine the cost of a query."""
    alike: dict[str, list[BenchQuery]] = {}
    for query in queries:
        alike.setdefault(query.aggregate, []).append(query)
    turns = zip_longest(*map(sample_order, alike.values()))
    return [query for turn in turns for query in turn if query is not None]


def _answered(frame: DataFrame) -> int:
    """Compute every row and discard it."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    counted = Observation()
    frame.observe(counted, F.count(F.lit(1)).alias("rows")).write.format("noop").mode("overwrite").save()
    return int(counted.get["rows"])


def _row(engine: str, form: str, counts: tuple[int, int], rows: int, seconds: float, answers: int, busy: float) -> Row:
    """`counts` are all queries and those that were measured. `sampled`: the rate is extrapolated from the latter."""
    queries, measured = counts
    return {
        "engine": engine,
        "form": form,
        "queries": queries,
        "queries_measured": measured,
        "rows": rows,
        "seconds": seconds,
        "rows_per_second": rows / (seconds * queries / measured),
        "answers": answers,
        "load": busy,
        "sampled": measured < queries,
    }


def _same_answers(small: DataFrame, queries: Sequence[BenchQuery], say: Say) -> bool:
    """Whether the first of all queries, one of each aggregate, give what `spark.sql` gives: of so few values sketches
    keep all. Spark's own count of different values is off even then, so the exact one stands for it."""
    from weft.spark import weave

    small.createOrReplaceTempView("events")
    answers = weave(small, [q.sql for q in queries], rate=RATE).answers()
    same = True
    for answer, query in list(zip(answers.values(), queries, strict=True))[:CHECKED_QUERIES]:
        text = query.sql.replace("approx_count_distinct(", "count(DISTINCT ")
        ours, theirs = (_values(frame) for frame in (answer, small.sparkSession.sql(text)))
        alike = ours.keys() == theirs.keys() and all(same_value(ours[k], theirs[k]) for k in theirs)
        if not alike:
            say(f"  answers of {query.sql} differ")
        same = same and alike
    return same


def same_value(one: Any, other: Any) -> bool:
    """Of the most common values their counts: the order of equally common values is not specified."""
    if isinstance(one, list):
        return [item["count"] for item in one] == [item["count"] for item in other]
    return math.isclose(one, other, rel_tol=1e-9)


def _values(frame: DataFrame) -> dict[Any, Any]:
    return {(row.k, row.window.start): row.x for row in frame.collect()}


def summarise(rows: Sequence[Row]) -> dict[str, Any]:
    summary: dict[str, Any] = {}
    for form in FORMS:
        woven, plain = (next(r for r in rows if (r["engine"], r["form"]) == (e, form)) for e in ("weft", "spark"))
        summary[f"{form}_ratio"] = woven["rows_per_second"] / plain["rows_per_second"]
        summary[f"{form}_rows_per_second"] = woven["rows_per_second"]
        summary[f"{form}_synopsis_bytes"] = woven["synopsis_bytes"]
    peaks = [r for r in rows if r["engine"] == "weft" and r["peak_memory_driver_bytes"] is not None]
    peak_bytes = [r["peak_memory_driver_bytes"] + r["peak_memory_workers_bytes"] for r in peaks]
    return {**summary, "peak_memory_bytes": max(peak_bytes, default=None)}


HOLISTIC_BENCH = Benchmark(
    name="holistic",
    about="a hundred percentiles, distinct counts and top-k over a thousand keys, beside plain Spark's queries",
    summary=SUMMARY,
    settings=HolisticSettings,
    run=run,
)
