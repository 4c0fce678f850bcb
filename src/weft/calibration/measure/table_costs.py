"""The time per row and per partial in Spark's aggregation and in hash tables: one query over few and many groups."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from weft.calibration.measure.fitting import Say
from weft.calibration.table_costs import TableCosts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BOTH: tuple[Literal["native", "lfta"], ...] = ("native", "lfta")

ROWS = 1_000_000
FEW = 100
LEAST = 1e-9
"""The cost of anything that noise hides: nothing is free."""


def measure_tables(spark: SparkSession, say: Say, rows: int = ROWS, turns: int = 2) -> TableCosts:
    """Seconds of one core: differences between runs over almost no rows, few groups, and as many groups as rows."""
    folder = Path(tempfile.mkdtemp(prefix="weft-calibrate-"))
    cores = int(spark.sparkContext.defaultParallelism)
    try:
        tables = {name: _rows(spark, folder / name, n, keys) for name, n, keys in _inputs(rows)}
        seconds: dict[tuple[str, str], float] = {}
        for groupings in BOTH:
            say(f"group-bys, {groupings}")
            for name, table in tables.items():
                seconds[groupings, name] = min(_run(table, groupings) for _ in range(turns + 1))
    finally:
        shutil.rmtree(folder, ignore_errors=True)

    def seconds_per_row(groupings: str, name: str, less: str) -> float:
        return max(LEAST, cores * (seconds[groupings, name] - seconds[groupings, less]) / rows)

    probe = _probe_seconds(rows)
    return TableCosts(
        row=max(LEAST, seconds_per_row("lfta", "few", "none") - probe),
        probe=probe,
        eviction=seconds_per_row("lfta", "many", "few"),
        native_probe=seconds_per_row("native", "few", "none"),
        native_eviction=seconds_per_row("native", "many", "few"),
    )


def _inputs(rows: int) -> tuple[tuple[str, int, int], ...]:
    """The name, rows and groups of each input."""
    return ("none", FEW, FEW), ("few", rows, FEW), ("many", rows, rows)


def _rows(spark: SparkSession, folder: Path, rows: int, keys: int) -> DataFrame:
    table = spark.range(0, rows, 1, 4).selectExpr(
        "timestamp_micros(id) AS ts", f"CAST(pmod(xxhash64(id), {keys}) AS INT) AS k", "CAST(id % 1000 AS INT) AS v"
    )
    table.write.parquet(str(folder))
    return spark.read.parquet(str(folder))


def _run(table: DataFrame, groupings: Literal["native", "lfta"]) -> float:
    from weft.spark import weave

    query = "SELECT k, window.start AS w, count(*) AS n, sum(v) AS s FROM events GROUP BY k, window(ts, '1 minute')"
    begun = time.perf_counter()
    weave(table, [query], phantoms="never", groupings=groupings).run_bounded("noop")
    return time.perf_counter() - begun


def _probe_seconds(rows: int) -> float:
    """c1: few groups in a large table, so that no group is evicted."""
    from weft.aggregates.kind import TableOperation
    from weft.engine.partial.hash_tables import FeedOutput, HashTableSpec, Slot, TaskHashTables

    counted, summed = Slot(TableOperation.SUM, None), Slot(TableOperation.SUM, "v")
    output = FeedOutput(0, {"k0": "k"}, {"n": counted, "s": summed})
    schema = pa.schema({"feed": pa.int32(), "k0": pa.int32(), "n": pa.int64(), "s": pa.int64()})
    numbers: Any = np.random.default_rng(1).integers(0, FEW, rows).astype(np.int32)
    batch = pa.RecordBatch.from_pydict({"k": numbers, "v": numbers})
    seconds = []
    for _ in range(3):
        tables = TaskHashTables([HashTableSpec(("k",), (counted, summed), 1 << 14, (output,))], schema, 0)
        list(tables.take(batch.slice(0, FEW)))  # compiles
        begun = time.perf_counter()
        list(tables.take(batch))
        seconds.append(time.perf_counter() - begun)
    return min(seconds) / rows
