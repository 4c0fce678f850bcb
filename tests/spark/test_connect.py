"""A real Spark Connect session: weft says what it cannot do there, and what to do instead."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="Spark Connect needs grpcio: pip install 'pyspark[connect]'")

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LIFE = """
from pyspark.sql import SparkSession
import weft

spark = SparkSession.builder.remote("local[1]").getOrCreate()
assert spark.range(3).count() == 3
counts = "SELECT count(*) AS n FROM stream GROUP BY window(timestamp, '1 second')"
for rows in (spark.readStream.format("rate").load(), spark.sql("SELECT now() AS timestamp")):
    try:
        weft.weave(rows, counts, event_time="timestamp")
    except weft.WeftError as refused:
        print(type(rows).__module__, type(refused).__name__, refused)
spark.stop()
"""


def test_a_connect_session_is_refused_with_the_reason_and_the_way_out(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k not in ("SPARK_MASTER", "SPARK_REMOTE")}
    life = subprocess.run(
        [sys.executable, "-c", LIFE],
        env=environment | {"SPARK_LOCAL_IP": "127.0.0.1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert life.returncode == 0, life.stderr[-3000:]
    stream, table = life.stdout.splitlines()
    for said in (stream, table):
        assert said.startswith("pyspark.sql.connect.dataframe NotOverConnect ")
        assert "foreachBatch" in said
        assert "Weave in a classic session: SparkSession.builder.master(...)" in said
