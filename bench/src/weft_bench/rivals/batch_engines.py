"""Batch engines on the same rows, where they are installed: one-second tiles by key, then each query from the tiles.

They read a bounded table, and keep no state that must survive a crash: they show how fast answers can be computed at
all.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec

from weft_bench.benchmark import BadSetting
from weft_bench.data.queries import BenchQuery
from weft_bench.rivals.spark_jobs import Engine, Outcome, Trial

TILE_COLUMN = {"sum(v)": "s", "count(*)": "c", "max(v)": "m"}
COMBINE = {"sum(v)": "sum", "count(*)": "sum", "max(v)": "max"}


def run_duckdb(point: Trial) -> Outcome:
    duckdb = import_module("duckdb")
    begun = time.perf_counter()
    with duckdb.connect() as database:
        database.execute(
            "CREATE TEMP TABLE tiles AS "
            "SELECT epoch_us(ts) // 1000000 AS t, k, sum(v) AS s, count(*) AS c, max(v) AS m "
            f"FROM read_parquet('{point.events.folder}/*.parquet') GROUP BY ALL"
        )
        answers = {q.name: database.sql(duckdb_sql(q)).to_arrow_table().num_rows for q in point.queries}
    return _outcome(point, begun, answers)


def duckdb_sql(query: BenchQuery) -> str:
    """From tiles to slides, and from slides to the windows that cover them."""
    column, combine = TILE_COLUMN[query.aggregate], COMBINE[query.aggregate]
    return (
        f"WITH slides AS (SELECT t - t % {query.slide} AS t, k, {combine}({column}) AS x FROM tiles GROUP BY ALL) "
        f"SELECT k, t - i * {query.slide} AS begin, {combine}(x) AS x "
        f"FROM slides, range({query.overlap}) AS back(i) GROUP BY ALL"
    )


def run_polars(point: Trial) -> Outcome:
    pl = import_module("polars")
    begun = time.perf_counter()
    value = pl.col("v")
    tiles = (
        pl.scan_parquet(f"{point.events.folder}/*.parquet")
        .group_by((pl.col("ts").dt.timestamp("us") // 1_000_000).alias("t"), "k")
        .agg(value.sum().alias("s"), pl.len().cast(pl.Int64).alias("c"), value.max().alias("m"))
        .collect()
    )
    answers = {}
    for q in point.queries:
        x = getattr(pl.col(TILE_COLUMN[q.aggregate]), COMBINE[q.aggregate])().alias("x")
        slides = tiles.lazy().group_by((pl.col("t") - pl.col("t") % q.slide).alias("t"), "k").agg(x)
        back = pl.LazyFrame({"i": [i * q.slide for i in range(q.overlap)]})
        windows = slides.join(back, how="cross").group_by((pl.col("t") - pl.col("i")).alias("begin"), "k")
        answers[q.name] = windows.agg(getattr(pl.col("x"), COMBINE[q.aggregate])()).collect().to_arrow().num_rows
    return _outcome(point, begun, answers)


def _outcome(point: Trial, begun: float, answers: dict[str, int]) -> Outcome:
    return Outcome(
        seconds=time.perf_counter() - begun,
        rows=point.events.rows,
        measured=len(point.queries),
        answers=sum(answers.values()),
        by_query=answers,
    )


RIVALS: Mapping[str, Engine] = {"duckdb": run_duckdb, "polars": run_polars}


def require(names: tuple[str, ...]) -> None:
    """Refuse before measuring, not after an hour of it."""
    for name in names:
        if name not in RIVALS:
            raise BadSetting(f"unknown rival {name!r}; there are {', '.join(RIVALS)}")
        if find_spec(name) is None:
            raise BadSetting(f"{name} is not installed here; install it with `pip install {name}`, or leave it out")
