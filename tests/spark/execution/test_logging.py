"""What a run says in its log: commits, idle batches, recovery, rescaling, corrupt records, queries that failed."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.streams import Stream, settle
from weft.spark.checkpoint.bucket_map import BucketMap
from weft.spark.execution.micro_batch import MicroBatchRunner
from weft.spark.options import TimeOptions
from weft.spark.sinks.simple import NoopSink

SHORT = "CREATE VIEW short AS SELECT window.start AS start, count(*) AS n FROM stream GROUP BY window(ts, '2 seconds')"


@pytest.mark.spark
def test_a_run_tells_of_commits_idle_batches_recovery_and_rescaling(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def told(text: str) -> list[logging.LogRecord]:
        return [record for record in caplog.records if text in record.getMessage()]

    caplog.set_level(logging.INFO, "weft")
    stream = Stream(spark, tmp_path)
    stream.write(1, seconds=(0, 3))
    run = stream.start(SHORT, buckets=2, idle_timeout="200 milliseconds", watermark=1)
    settle(run)
    deadline = time.monotonic() + 60
    while not told("no row for") and time.monotonic() < deadline:
        time.sleep(0.1)
    run.stop()
    assert told("has no batch yet")
    assert told("groups are in 2 buckets")
    (first,) = told("batch 0 committed: 40 rows")
    assert (first.name, first.levelname) == ("weft.spark.execution.micro_batch", "INFO")
    assert told("no row for")
    caplog.clear()
    (tmp_path / "state" / "segments" / "0000" / "left.arrow").write_bytes(b"torn")
    stream.start(SHORT, buckets=3, watermark=1).stop()
    assert told("go on after batch")
    (left,) = told("removed segments/0000/left.arrow, which a run that was killed left behind")
    assert left.levelname == "WARNING"
    assert told("was in 2 buckets, and is in 3 now")


@pytest.mark.spark
def test_a_batch_tells_of_corrupt_records(spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    rows = spark.createDataFrame(
        [(0, 1, None, b"{"), (0, 2, None, None)],
        "kafka_partition INT, kafka_offset BIGINT, kafka_key BINARY, kafka_bad BINARY",
    )
    physical: Any = None
    runner = MicroBatchRunner(physical, BucketMap(1), TimeOptions(), NoopSink(), corrupt_sink=lambda batch, frame: None)
    assert runner._divert_corrupt_records(rows, 7) == 1
    assert [record.getMessage() for record in caplog.records if record.name.startswith("weft")] == [
        "batch 7: 1 records could not be read, and are in the side output"
    ]


def test_without_a_handler_of_the_users_nothing_is_printed() -> None:
    code = "import logging, weft.spark.logs; logging.getLogger('weft.spark.execution.recovery').warning('said')"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (printed.stdout, printed.stderr) == ("", "")
