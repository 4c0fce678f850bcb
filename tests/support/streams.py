"""A stream of files that tests write one after another, and what plain Spark gives over it."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from weft.spark import weave
from weft.sql import parse

SCHEMA = "ts TIMESTAMP, k STRING, v INT"
SECONDS = 15
BEGIN = 1_709_251_200_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Stream:
    """Files of fifteen seconds each, written when their time has come; rows up to fifteen seconds late."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder, self.written = spark, folder, 0
        (folder / "rows").mkdir(parents=True)
        self.random = Random(7)

    def write(self, files: int, rows: int = 40, *, seconds: tuple[int, int] | None = None) -> None:
        for _ in range(files):
            i = self.written
            first, last = seconds or ((i - 1) * SECONDS, (i + 1) * SECONDS)
            span = range(first * 1_000_000, last * 1_000_000)
            micros = [BEGIN + self.random.choice(span) for _ in range(rows)]
            table = pa.table(
                {
                    "ts": pa.array(micros, pa.timestamp("us", "UTC")),
                    "k": [self.random.choice("abc") for _ in range(rows)],
                    "v": pa.array([self.random.randrange(100) for _ in range(rows)], pa.int32()),
                }
            )
            # Spark looks at any moment, and goes by a file's age: it must find it whole and aged.
            path = self.folder / f"{i:04d}.parquet"
            pq.write_table(table, path)
            os.utime(path, (1_700_000_000 + i, 1_700_000_000 + i))
            path.rename(self.folder / "rows" / path.name)
            self.written += 1

    def start(
        self,
        queries: str,
        *,
        late_sink: Any = None,
        watermark: int = SECONDS + 5,
        trigger: str | None = None,
        **settings: Any,
    ) -> Any:
        rows = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(self.folder / "rows"))
        job = weave(rows, queries, watermark=f"{watermark} seconds", **settings)
        answers, state = f"parquet:{self.folder / 'answers'}", self.folder / "state"
        return job.start(sink=answers, checkpoint=state, trigger=trigger, late_sink=late_sink)

    def table(self) -> pa.Table:
        return self.spark.read.schema(SCHEMA).parquet(str(self.folder / "rows")).toArrow()

    def answers(self, name: str) -> pa.Table:
        return self.spark.read.parquet(str(self.folder / "answers" / name)).toArrow()


def expected(stream: Stream, text: str, *, since: int | None = None, until: int | None = None) -> pa.Table:
    """What plain Spark gives: windows that begin from `since` on and end by `until`, in microseconds."""
    (query,) = parse(text)
    session = stream.spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.createDataFrame(stream.table()).createOrReplaceTempView("stream")
    frame = session.sql(query.spark_sql)
    micros = "unix_micros(start)"
    if since is not None:
        frame = frame.where(f"{micros} >= {since}")
    if until is not None:
        frame = frame.where(f"{micros} + {query.window.length} <= {until}")
    return frame.toArrow()


def settle(run: Any) -> None:
    run.query.processAllAvailable()


def wait_for_threads(name: str) -> None:
    """Until what the job does beside its batches, by the name that its threads begin with, is done."""
    for thread in threading.enumerate():
        if thread.name.startswith(name):
            thread.join()


def first_window(run: Any, name: str) -> int | None:
    """The begin of the first window that a query answers, in microseconds."""
    said = run.since(name)
    return None if said is None else (datetime.fromisoformat(said) - EPOCH) // timedelta(microseconds=1)


def latest(stream: Stream, files: int) -> int:
    parts = [pq.read_table(stream.folder / "rows" / f"{i:04d}.parquet") for i in range(files)]
    return max(part.column("ts").cast(pa.int64()).to_numpy().max() for part in parts)


def write_rows(folder: Path, files: int, rows: int, seed: int = 5) -> None:
    """Files in the order of time, rows out of order within the watermark."""
    random = Random(seed)
    folder.mkdir(parents=True)
    begin = datetime(2024, 3, 1, tzinfo=UTC)
    for i in range(files):
        micros = [random.randrange((i * 15 - 15) * 1_000_000, (i + 1) * 15_000_000) for _ in range(rows)]
        table = pa.table(
            {
                "ts": pa.array([begin + timedelta(microseconds=m) for m in micros], pa.timestamp("us", "UTC")),
                "k": [random.choice("abcde") for _ in range(rows)],
                "v": pa.array([random.randrange(100) for _ in range(rows)], pa.int32()),
            }
        )
        path = folder / f"{i:04d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_700_000_000 + i, 1_700_000_000 + i))
