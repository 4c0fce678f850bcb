"""One real run with one real server for all tests of the service; a test that changes it uses names of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weft.service import AnswerBuffer, Limits, Server, Service, make_app, open_socket
from weft.spark import weave

SCHEMA = "ts TIMESTAMP, k STRING, v INT"
BEGIN = 1_709_251_200_000_000
SECONDS = 10
QUERIES = """
CREATE VIEW by_key AS SELECT k, window.start AS start, count(*) AS n, avg(v) AS mean
  FROM stream GROUP BY k, window(ts, '10 seconds', '5 seconds');
CREATE VIEW high AS SELECT window.start AS start, sum(v) AS total
  FROM stream WHERE v > 50 GROUP BY window(ts, '5 seconds');
"""
LIMITS = Limits(queries=12, body_bytes=20_000, streams=3)


@dataclass
class Served:
    """A run over files of ten seconds each, and a client of its service."""

    folder: Path
    run: Any
    answers: AnswerBuffer
    server: Server
    client: httpx.Client
    limits: Limits = LIMITS
    written: int = 0

    def write(self, files: int = 1) -> int:
        """More rows, and all they bring; the last batch."""
        for _ in range(files):
            i = self.written
            path = self.folder / f"{i:04d}.parquet"
            pq.write_table(rows(i), path)
            os.utime(path, (1_700_000_000 + i, 1_700_000_000 + i))
            path.rename(self.folder / "rows" / path.name)
            self.written += 1
        self.run.query.processAllAvailable()
        return int(self.run.metrics()["batch"])


def rows(file: int) -> pa.Table:
    n = 40
    times = [BEGIN + (file * n + i) * SECONDS * 1_000_000 // n for i in range(n)]
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "k": ["abc"[i % 3] for i in range(n)],
            "v": pa.array([(i * 37 + file) % 100 for i in range(n)], pa.int32()),
        }
    )


def start(spark: Any, folder: Path, answers: AnswerBuffer, sink: Any = None) -> Any:
    (folder / "rows").mkdir(parents=True, exist_ok=True)
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "rows"))
    sink = sink or f"parquet:{folder / 'answers'}"
    return weave(stream, QUERIES, retention="1 minute").start(sink=sink, checkpoint=folder / "state", listener=answers)


@pytest.fixture(scope="session")
def served(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    answers = AnswerBuffer(rows=50)
    run = start(spark, folder, answers)
    bound = open_socket("127.0.0.1", 0)
    server = Server(make_app(Service(run, answers, LIMITS)), bound)
    server.start()
    with httpx.Client(base_url=server.url, timeout=60, trust_env=False) as client:
        one = Served(folder, run, answers, server, client)
        one.write(3)
        yield one
    server.stop()
    run.stop()
