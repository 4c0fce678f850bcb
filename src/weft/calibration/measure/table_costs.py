"""What a row and a partial take in Spark's aggregation and in bounded tables: one query, few groups and many."""

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
"""Nothing is free: where noise hides a price, it is this."""


def measure_tables(spark: SparkSession, say: Say, rows: int = ROWS, turns: int = 2) -> TableCosts:
    """Seconds of one core: differences between runs over no rows, rows of few groups, and as many groups as rows."""
    folder = Path(tempfile.mkdtemp(prefix="weft-calibrate-"))
    cores = int(spark.sparkContext.defaultParallelism)
    try:
        tables = {name: _rows(spark, folder / name, n, keys) for name, n, keys in _made(rows)}
        taken: dict[tuple[str, str], float] = {}
        for groupings in BOTH:
            say(f"group-bys, {groupings}")
            for name, table in tables.items():
                taken[groupings, name] = min(_run(table, groupings) for _ in range(turns + 1))
    finally:
        shutil.rmtree(folder, ignore_errors=True)

    def a_row(groupings: str, name: str, less: str) -> float:
        return max(LEAST, cores * (taken[groupings, name] - taken[groupings, less]) / rows)

    probe = _probe_seconds(rows)
    return TableCosts(
        row=max(LEAST, a_row("lfta", "few", "none") - probe),
        probe=probe,
        eviction=a_row("lfta", "many", "few"),
        native_probe=a_row("native", "few", "none"),
        native_eviction=a_row("native", "many", "few"),
    )


def _made(rows: int) -> tuple[tuple[str, int, int], ...]:
    return ("none", FEW, FEW), ("few", rows, FEW), ("many", rows, rows)


def _rows(spark: SparkSession, folder: Path, rows: int, keys: int) -> DataFrame:
    made = spark.range(0, rows, 1, 4).selectExpr(
        "timestamp_micros(id) AS ts", f"CAST(pmod(xxhash64(id), {keys}) AS INT) AS k", "CAST(id % 1000 AS INT) AS v"
    )
    made.write.parquet(str(folder))
    return spark.read.parquet(str(folder))


def _run(table: DataFrame, groupings: Literal["native", "lfta"]) -> float:
    from weft.spark import weave

    query = "SELECT k, window.start AS w, count(*) AS n, sum(v) AS s FROM events GROUP BY k, window(ts, '1 minute')"
    begun = time.perf_counter()
    weave(table, [query], phantoms="never", groupings=groupings).run_bounded("noop")
    return time.perf_counter() - begun


def _probe_seconds(rows: int) -> float:
    """c1: few groups in a large table, so that nothing is thrown out."""
    from weft.aggregates.kind import TableOperation
    from weft.engine.partial.hash_tables import Cascade, CascadeTable, Out, Slot

    counted, summed = Slot(TableOperation.SUM, None), Slot(TableOperation.SUM, "v")
    out = Out(0, {"k0": "k"}, {"n": counted, "s": summed})
    schema = pa.schema({"feed": pa.int32(), "k0": pa.int32(), "n": pa.int64(), "s": pa.int64()})
    numbers: Any = np.random.default_rng(1).integers(0, FEW, rows).astype(np.int32)
    batch = pa.RecordBatch.from_pydict({"k": numbers, "v": numbers})
    taken = []
    for _ in range(3):
        cascade = Cascade([CascadeTable(("k",), (counted, summed), 1 << 14, (out,))], schema, 0)
        list(cascade.take(batch.slice(0, FEW)))  # compiles
        begun = time.perf_counter()
        list(cascade.take(batch))
        taken.append(time.perf_counter() - begun)
    return min(taken) / rows
