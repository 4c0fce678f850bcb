"""Seeded streams: made natively by Spark, kept as parquet files whose order is the order of event time."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

BEGIN = 1_700_000_000 * 1_000_000
"""Event time of the first row, in microseconds since 1970; no full minute, so windows of most slides cross it."""

SCHEMA = "ts TIMESTAMP, k STRING, v DOUBLE"


@dataclass(frozen=True, slots=True)
class Events:
    """A folder of rows (ts, k, v): `rate` rows per second of event time, in order, `k` uniform over `k0`, `k1`, ..."""

    folder: Path
    rows: int
    keys: int
    rate: int
    files: int

    def table(self, spark: SparkSession, rows: int | None = None) -> DataFrame:
        """All rows as a bounded table, or the first ones."""
        frame = spark.read.schema(SCHEMA).parquet(str(self.folder))
        if rows is None or rows >= self.rows:
            return frame
        return frame.where(f"ts < timestamp_micros({BEGIN} + {rows}L * 1000000 div {self.rate})")

    def stream(self, spark: SparkSession, batches: int) -> DataFrame:
        """The rows as a stream that is read in so many micro-batches."""
        files_a_batch = -(-self.files // batches)
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", str(files_a_batch))
        return reader.parquet(str(self.folder))


def make_events(spark: SparkSession, folder: Path, *, rows: int, keys: int, rate: int, files: int, seed: int) -> Events:
    """The same seed gives the same rows, and a shorter stream is the beginning of a longer one."""
    (
        spark.range(0, rows, 1, files)
        .selectExpr(
            f"timestamp_micros({BEGIN} + id * 1000000 div {rate}) AS ts",
            f"concat('k', pmod(xxhash64(id, {seed}L), {keys})) AS k",
            f"pmod(xxhash64({seed}L, id), 1000000) / 10000.0D AS v",
        )
        .write.parquet(str(folder))
    )
    put_in_order(folder)
    return Events(folder, rows, keys, rate, files)


def put_in_order(folder: Path) -> None:
    """A stream reads files by their age; they were written side by side, so their ages are set."""
    parts = sorted(folder.glob("part-*.parquet"))
    first = int(time.time()) - len(parts)
    for i, part in enumerate(parts):
        os.utime(part, (first + i, first + i))
