"""A run that can be killed and started again: `python resumable.py FOLDER` weaves FOLDER/rows into FOLDER/answers
and tells each batch that is done."""

from __future__ import annotations

import sys

from weft.spark import local_session, weave

QUERIES = """
CREATE VIEW by_key AS SELECT k, window.start AS start, count(*) AS n, sum(v) AS total, max(v) AS top
  FROM stream GROUP BY k, window(ts, '30 seconds', '7 seconds');
CREATE VIEW overall AS SELECT window.start AS start, count(*) AS n, avg(v) AS mean
  FROM stream WHERE v > 10 GROUP BY window(ts, '10 seconds', '5 seconds');
CREATE VIEW slow AS SELECT k, window.end AS end, min(v) AS least, last(v) AS newest
  FROM stream GROUP BY window(ts, '2 minutes', '1 minute'), k HAVING count(*) > 1;
"""
SCHEMA = "ts TIMESTAMP, k STRING, v INT"


def main(folder: str) -> None:
    # The quicker compiler alone: a life that is soon killed is mostly start-up.
    spark = local_session({"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(f"{folder}/rows")
    job = weave(stream, QUERIES, watermark="20 seconds")
    run = job.start(sink=f"parquet:{folder}/answers", checkpoint=f"{folder}/state", available_now=True)
    told, ended = 0, False
    while not ended:
        ended = run.wait(0.02)
        for batch in run.batches()[told:]:
            print("batch", batch.batch, flush=True)
            told += 1
    run.drain()


if __name__ == "__main__":
    main(sys.argv[1])
