"""A life of a job into Postgres that kills itself between writing a batch and recording it: `FOLDER URL`."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from tests.support.resumable import QUERIES, SCHEMA
from weft.spark import local_session, weave
from weft.spark.sinks.postgres import PostgresSink

LAST_BATCH = 3


class DyingSink(PostgresSink):
    def take(self, batch: int, answers: Any) -> None:
        super().take(batch, answers)
        if batch == LAST_BATCH:
            os.killpg(0, signal.SIGKILL)


def main(folder: str, url: str) -> None:
    spark = local_session({"spark.driver.memory": "1g"})
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(f"{folder}/rows")
    job = weave(stream, QUERIES, watermark="20 seconds")
    job.start(sink=DyingSink(url), checkpoint=f"{folder}/state", available_now=True).wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
