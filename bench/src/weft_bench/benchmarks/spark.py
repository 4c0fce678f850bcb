"""weft against plain Spark, on the same seeded rows and queries, in the same process, taking turns."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft_bench.benchmark import Benchmark, Report, Row, Say, integer, numbers, option, words
from weft_bench.data.queries import make_queries, sample_order
from weft_bench.machine import PeakMemory, describe_machine, load

if TYPE_CHECKING:
    from weft.calibration.measure.events import Events
    from weft_bench.rivals.spark_jobs import Engine, Outcome, Trial

RATE = 3_700
"""Rows per second of event time: 20 million rows are an hour and a half."""

FEW_KEYS = 100
"""Few groups, so that rows, not answers, are the work: then a hundred queries should cost little more than one."""

WARM_ROWS = 100_000
CHECKED_QUERIES = 3
FILES_A_BATCH = 2
SUMMARY = {
    "ratio_1": "rows per second of weft over those of plain Spark; one query, overlap 20, sum",
    "ratio_10": "the same for 10 queries, which plain Spark runs one after the other",
    "ratio_100": "the same for 100 queries",
    "one_job_ratio_10": "weft over Spark with all 10 queries in one batch job",
    "one_job_ratio_100": "weft over Spark with all 100 queries in one batch job",
    "wall_100_over_1_at_100_keys": "time of 100 queries in weft over that of one query, with 100 keys",
    "rows_per_second_100": "weft, 100 queries, answers discarded (sink noop)",
    "answers_per_second_100": "weft, 100 queries, sink noop",
    "parquet_over_noop_100": "time with the parquet sink over that with noop, 100 queries",
    "duckdb_rows_per_second_100": "with --rivals duckdb: one-second tiles in batch, then each of 100 queries from them",
    "polars_rows_per_second_100": "with --rivals polars: the same",
    "peak_memory_bytes": "peak memory of the driver (Python and JVM) and the Python workers in a run of weft",
    "answers_checked": "whether weft and spark.sql gave as many answers, for some queries of each point on a slice",
}


@dataclass(frozen=True, slots=True)
class SparkSettings:
    queries: tuple[int, ...] = option(
        (1, 10, 100), "How many queries at a time; one point each.", quick=(1, 100), parse=numbers, metavar="N,N,..."
    )
    rows: int = option(20_000_000, "Rows of the stream.", quick=100_000)
    keys: int = option(1_000, "Different group keys.", quick=FEW_KEYS)
    repeat: int = option(1, "Turns of each engine at a point; rates are over all of them.")
    budget: int = option(100, "Seconds that plain Spark may take at a point, all turns together.", quick=1)
    batches: int = option(4, "Micro-batches that the stream is read in.", quick=2)
    seed: int = option(1, "Of rows and queries.", parse=integer)
    rivals: tuple[str, ...] = option(
        (), "Batch engines to run too, if installed: duckdb, polars.", parse=words, metavar="NAMES"
    )


def run(settings: SparkSettings, say: Say) -> Report:
    from weft.spark import local_session
    from weft_bench.rivals.batch_engines import require

    require(settings.rivals)
    spark = local_session()
    folder = Path(tempfile.mkdtemp(prefix="weft-bench-"))
    try:
        rows, checked = _measure(settings, spark, folder, say)
    finally:
        spark.catalog.dropTempView("events")
        shutil.rmtree(folder, ignore_errors=True)
    summary = summarise(rows, settings.keys)
    return Report("spark", describe_machine(), asdict(settings), rows, {**summary, "answers_checked": checked})


def _measure(settings: SparkSettings, spark: Any, folder: Path, say: Say) -> tuple[list[Row], bool]:
    from weft.calibration.measure.events import make_events
    from weft_bench.rivals.spark_jobs import Trial, run_weft

    def events(name: str, rows: int, keys: int) -> Events:
        say(f"making {rows:,} rows with {keys:,} keys")
        files = settings.batches * FILES_A_BATCH
        return make_events(spark, folder / name, rows=rows, keys=keys, rate=RATE, files=files, seed=settings.seed)

    many = events("many", settings.rows, settings.keys)
    small = events("small", max(1, min(WARM_ROWS, settings.rows // 50)), settings.keys)
    rows: list[Row] = []
    checked = True
    for count in settings.queries:
        queries = make_queries(count, settings.seed)
        budget = settings.budget / settings.repeat
        point = Trial(spark, many, queries, settings.batches, budget, folder, say, small=small)
        say(f"warming up with {_queries(count)} on {small.rows:,} rows")
        checked = _warm_up_and_check(replace(point, events=small)) and checked
        rows += _take_turns(point, settings)
    most = settings.queries[-1]
    if most > 1 and settings.keys != FEW_KEYS:
        few = events("few", settings.rows, FEW_KEYS)
        for turn in range(settings.repeat):
            for count in (1, most):
                queries = make_queries(count, settings.seed)
                point = Trial(spark, few, queries, settings.batches, settings.budget, folder, say)
                rows.append(_timed("weft", run_weft, point, turn))
    return rows, checked


def _warm_up_and_check(point: Trial) -> bool:
    """Weave the queries over a small slice. Whether some of them have as many answers as `spark.sql` gives."""
    from weft_bench.rivals.spark_jobs import count_in_batch, run_weft

    woven = run_weft(point).by_query or {}
    expected = count_in_batch(point, sample_order(point.queries)[:CHECKED_QUERIES])
    answered = {name: woven.get(name) for name in expected}
    if answered != expected:
        point.say(f"  answers differ: spark.sql gives {expected}, weft {answered}")
    return answered == expected


def _take_turns(point: Trial, settings: SparkSettings) -> list[Row]:
    from weft_bench.rivals.batch_engines import RIVALS
    from weft_bench.rivals.spark_jobs import rows_for_one_job, run_spark, run_spark_one_job, run_weft, run_weft_parquet

    line_up: dict[str, Engine] = {"weft": run_weft, "spark": run_spark}
    if len(point.queries) == settings.queries[-1]:
        line_up["weft_parquet"] = run_weft_parquet
    fewer: int | None = None
    if len(point.queries) > 1:
        line_up["spark_one_job"] = run_spark_one_job
        fewer = rows_for_one_job(point)
    line_up |= {name: RIVALS[name] for name in settings.rivals}
    rows: list[Row] = []
    for turn in range(settings.repeat):
        measured = sum(row["queries_measured"] for row in rows if row["engine"] == "spark")
        for name, engine in line_up.items():
            limit = fewer if name == "spark_one_job" else None
            rows.append(_timed(name, engine, replace(point, skip=measured, rows=limit), turn))
    return rows


def _queries(count: int) -> str:
    return "1 query" if count == 1 else f"{count:,} queries"


def _timed(name: str, engine: Engine, point: Trial, turn: int) -> Row:
    busy = load()
    with PeakMemory() as memory:
        outcome = engine(point)
    row = make_row(name, outcome, point.events, len(point.queries), turn, busy) | memory.as_row()
    point.say(
        f"{name}  {_queries(row['queries'])}  {row['keys']:,} keys  {row['seconds']:.2f} s"
        f"  {row['rows_per_second']:,.0f} rows/s  {row['answers_per_second']:,.0f} answers/s"
        f"{'  sampled' if row['sampled'] else ''}{'  cut' if row['cut'] else ''}"
    )
    return row


def make_row(engine: str, outcome: Outcome, events: Events, queries: int, turn: int, busy: float) -> Row:
    """`sampled`: not all queries or not all rows were run; the rate is scaled to all queries. `cut`: stopped midway."""
    return {
        "engine": engine,
        "queries": queries,
        "queries_measured": outcome.measured,
        "rows": round(outcome.rows),
        "keys": events.keys,
        "turn": turn,
        "seconds": outcome.seconds,
        "rows_per_second": outcome.rows_per_second(queries),
        "answers": outcome.answers,
        "answers_per_second": outcome.answers / outcome.seconds,
        "plan_seconds": outcome.plan_seconds,
        "load": busy,
        "sampled": outcome.measured < queries or outcome.rows < events.rows,
        "cut": outcome.cut,
    }


def summarise(rows: Sequence[Row], keys: int) -> dict[str, Any]:
    """Everything in `SUMMARY`, and the same names for other numbers of queries; null for what was not measured."""
    summary: dict[str, Any] = {name: None for name in SUMMARY if name != "answers_checked"}
    for n in sorted({row["queries"] for row in rows}):
        rate = {row["engine"]: _rate(rows, row["engine"], n, keys) for row in rows}
        summary[f"ratio_{n}"] = _over(rate.get("weft"), rate.get("spark"))
        if n > 1:
            summary[f"one_job_ratio_{n}"] = _over(rate.get("weft"), rate.get("spark_one_job"))
            many, one = (_mean(rows, "seconds", "weft", q, FEW_KEYS) for q in (n, 1))
            if many is not None:
                summary[f"wall_{n}_over_1_at_{FEW_KEYS}_keys"] = _over(many, one)
        summary[f"rows_per_second_{n}"] = rate.get("weft")
        summary[f"answers_per_second_{n}"] = _mean(rows, "answers_per_second", "weft", n, keys)
        noop, parquet = (_mean(rows, "seconds", e, n, keys) for e in ("weft", "weft_parquet"))
        summary[f"parquet_over_noop_{n}"] = _over(parquet, noop)
        summary |= {f"{e}_rows_per_second_{n}": rate[e] for e in ("duckdb", "polars") if rate.get(e) is not None}
    peaks = [_peak(row) for row in rows if row["engine"] in ("weft", "weft_parquet")]
    summary["peak_memory_bytes"] = max((p for p in peaks if p is not None), default=None)
    return summary


def _select(rows: Sequence[Row], engine: str, queries: int, keys: int) -> list[Row]:
    return [r for r in rows if (r["engine"], r["queries"], r["keys"]) == (engine, queries, keys)]


def _mean(rows: Sequence[Row], what: str, engine: str, queries: int, keys: int) -> float | None:
    values = [r[what] for r in _select(rows, engine, queries, keys)]
    return sum(values) / len(values) if values else None


def _rate(rows: Sequence[Row], engine: str, queries: int, keys: int) -> float | None:
    """Rows per second over all turns: a turn that measured more of the queries weighs more."""
    turns = _select(rows, engine, queries, keys)
    if not turns:
        return None
    return float(sum(r["rows_per_second"] * r["seconds"] for r in turns) / sum(r["seconds"] for r in turns))


def _over(one: float | None, other: float | None) -> float | None:
    return None if one is None or not other else one / other


def _peak(row: Mapping[str, Any]) -> int | None:
    driver, workers = row["peak_memory_driver_bytes"], row["peak_memory_workers_bytes"]
    return None if driver is None else int(driver + workers)


SPARK = Benchmark(
    name="spark",
    about="hundreds of queries woven by weft, against plain Spark running each of them, and against one Spark job",
    summary=SUMMARY,
    settings=SparkSettings,
    run=run,
)
