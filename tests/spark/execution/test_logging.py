"""What a run logs: commits, idle batches, recovery, rescaling, retries, backfills, plan changes, refused rows."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.logger.logger import JSONFormatter

from tests.support.streams import Stream, settle
from weft.spark import weave
from weft.spark.checkpoint.batch_log import BatchRecord
from weft.spark.checkpoint.bucket_map import BucketMap
from weft.spark.execution.micro_batch import MicroBatchRunner
from weft.spark.logs import log_event
from weft.spark.options import TimeOptions
from weft.spark.sinks.simple import NoopSink

SHORT = "CREATE VIEW short AS SELECT window.start AS start, count(*) AS n FROM stream GROUP BY window(ts, '2 seconds')"
POISON = "CREATE VIEW poison AS SELECT max(CAST(k AS INT)) AS x FROM stream GROUP BY window(ts, '2 seconds')"
PAST = "CREATE VIEW past AS SELECT window.start AS start, sum(v) AS s FROM stream GROUP BY window(ts, '4 seconds')"
START = datetime(2024, 3, 1, tzinfo=UTC)


class Log:
    """The records that begin with a message."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "weft")
        self.caplog = caplog

    def records(self, message: str) -> list[Any]:
        return [record for record in self.caplog.records if record.getMessage().startswith(message)]

    def one(self, message: str) -> tuple[str, str, dict[str, Any]]:
        """The module, the level and the values of the only such record."""
        (record,) = self.records(message)
        return record.name.removeprefix("weft.spark."), record.levelname, record.context

    def wait_for(self, message: str) -> None:
        deadline = time.monotonic() + 60
        while not self.records(message) and time.monotonic() < deadline:
            time.sleep(0.1)


@pytest.mark.spark
def test_commits_idle_batches_recovery_and_rescaling_are_logged(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log, stream = Log(caplog), Stream(spark, tmp_path)
    stream.write(1, seconds=(0, 3))
    run = stream.start(SHORT, buckets=2, idle_timeout="200 milliseconds", watermark=1)
    settle(run)
    log.wait_for("idle batch advances the watermark")
    run.stop()
    assert log.one("run starts with an empty checkpoint")[0] == "execution.recovery"
    assert log.one("the rows of the first batch place groups in buckets")[2] == {"buckets": 2}
    first = log.records("batch is committed")[0]
    assert (first.name, first.levelname) == ("weft.spark.execution.micro_batch", "INFO")
    assert {"batch": 0, "rows": 40}.items() <= first.context.items()
    idle = log.records("idle batch advances the watermark")[0]
    assert (idle.name, idle.context["batch"]) == ("weft.spark.execution.stream_execution", 1)
    caplog.clear()
    (tmp_path / "state" / "segments" / "0000" / "left.arrow").write_bytes(b"torn")
    stream.start(SHORT, buckets=3, watermark=1).stop()
    assert log.one("run continues a checkpoint")[1] == "INFO"
    removed = log.one("removed a file that a killed run left behind")
    assert removed == ("execution.recovery", "WARNING", {"file": "segments/0000/left.arrow"})
    where, _, rescaled = log.one("state is divided among other buckets")
    assert (where, rescaled["before"], rescaled["buckets"]) == ("execution.rescale", 2, 3)


@pytest.mark.spark
def test_retries_late_rows_backfills_and_plan_changes_are_logged(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log, stream = Log(caplog), Stream(spark, tmp_path)
    stream.write(1, seconds=(20, 30))
    run = stream.start(f"{SHORT}; {POISON}", watermark=1, tolerance=None)
    settle(run)
    retried = log.one("batch is retried without queries")
    assert retried == ("execution.retry", "WARNING", {"batch": 0, "queries": ["poison"]})
    assert log.one("query fails and leaves")[2]["query"] == "poison"
    assert not log.records("rows are late")
    stream.write(1, seconds=(0, 10))
    settle(run)
    late = log.one("rows are late")
    assert late == ("execution.micro_batch", "WARNING", {"batch": 1, "rows": 40, "late": "drop"})
    run.add(PAST, since="source")
    run.drain()
    assert log.one("backfill starts")[:2] == ("queries.backfill", "INFO")
    assert log.one("backfill is complete")[2] == {"query": "past"}
    reasons = [record.context["reason"] for record in log.records("plan changes")]
    assert reasons[0].startswith("poison left: ")
    assert reasons[1:] == ["added past", "past finished the backfill"]


@pytest.mark.spark
def test_corrupt_records_are_logged(spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    log = Log(caplog)
    rows = spark.createDataFrame(
        [(None, 0, 1, None, b"{"), (START, 0, 2, None, None)],
        "ts TIMESTAMP, kafka_partition INT, kafka_offset BIGINT, kafka_key BINARY, kafka_bad BINARY",
    )
    runner = MicroBatchRunner(
        weave(rows, SHORT).physical, BucketMap(1), TimeOptions(), NoopSink(), corrupt_sink=lambda batch, frame: None
    )
    record, _ = runner.run_batch(rows, 7, BatchRecord.initial(), time.perf_counter())
    assert record.corrupt_records == 1
    corrupt = log.one("corrupt records go to the side output")
    assert corrupt == ("execution.micro_batch", "WARNING", {"batch": 7, "records": 1})


def test_the_formatter_of_pyspark_writes_the_values_as_json(caplog: pytest.LogCaptureFixture) -> None:
    log = Log(caplog)
    log_event(logging.getLogger("weft.spark.example"), "query joins", query="q1", begin=None)
    (record,) = log.records("query joins: query=q1")
    written = json.loads(JSONFormatter().format(record))
    assert (written["logger"], written["context"]) == ("weft.spark.example", {"query": "q1", "begin": None})


def test_without_a_handler_of_the_application_nothing_is_printed() -> None:
    code = "import logging, weft.spark.logs; logging.getLogger('weft.spark.execution.recovery').warning('text')"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (printed.stdout, printed.stderr) == ("", "")
