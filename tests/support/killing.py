"""Lives of a real run, each in a process of its own, cut short by SIGKILL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support import ROOT
from tests.support.compare import assert_same_rows
from tests.support.resumable import QUERIES, SCHEMA
from weft.sql import parse


def live(folder: Path, batches: int | None, seconds: float, workload: str = "every") -> bool:
    """Run until done, or kill the whole process group so many seconds after so many batches; whether it was done."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.resumable", str(folder), workload],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=(folder / "errors.txt").open("w"),
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        for told, _ in enumerate(process.stdout, 1):
            if told == batches:
                time.sleep(seconds)
                break
        else:
            assert process.wait(60) == 0, (folder / "errors.txt").read_text()[-3000:]
        return process.poll() is not None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


KEYS = {"by_key": (0, 1), "overall": (0,), "slow": (0, 1)}


def plain(spark: Any, folder: Path) -> Any:
    """A session that knows all rows as `stream`."""
    rows = spark.read.schema(SCHEMA).parquet(str(folder / "rows"))
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.createDataFrame(rows.toArrow()).createOrReplaceTempView("stream")
    return session


def assert_answers(spark: Any, folder: Path) -> None:
    """The parquet sink holds every row of plain Spark, once."""
    session = plain(spark, folder)
    for query in parse(QUERIES):
        text = query.spark_sql.replace("last(v)", "max_by(v, ts)")
        found = spark.read.parquet(str(folder / "answers" / query.name)).toArrow()
        assert_same_rows(found, session.sql(text).toArrow(), key=KEYS[query.name], text=query.text)
