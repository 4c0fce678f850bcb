"""A run that can be killed and started again: `python -m tests.support.resumable FOLDER [WORKLOAD]` weaves FOLDER/rows
into FOLDER/answers and tells each batch that is done. FOLDER is a path, or a file:// address."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from weft.schedule import pace
from weft.spark import local_session, weave

QUERIES = """
CREATE VIEW by_key AS SELECT k, window.start AS start, count(*) AS n, sum(v) AS total, max(v) AS top
  FROM stream GROUP BY k, window(ts, '30 seconds', '7 seconds');
CREATE VIEW overall AS SELECT window.start AS start, count(*) AS n, avg(v) AS mean
  FROM stream WHERE v > 10 GROUP BY window(ts, '10 seconds', '5 seconds');
CREATE VIEW slow AS SELECT k, window.end AS end, min(v) AS least, last(v) AS newest
  FROM stream GROUP BY window(ts, '2 minutes', '1 minute'), k HAVING count(*) > 1;
"""
AT_MOST = """
CREATE VIEW each AS SELECT k, window.start AS start, sum(v) AS total FROM stream [RANGE 20 SECONDS SLIDE 10 SECONDS]
  GROUP BY k;
CREATE VIEW often AS SELECT k, window.start AS start, count(*) AS n, median(v) AS middle
  FROM stream [RANGE 30 SECONDS SLIDE AT MOST 15 SECONDS] GROUP BY k;
CREATE VIEW seldom AS SELECT k, window.start AS start, max(v) AS top, stddev(v) AS spread
  FROM stream [RANGE 1 MINUTE SLIDE AT MOST 20 SECONDS] WHERE v > 10 GROUP BY k HAVING count(*) > 1;
CREATE VIEW overall AS SELECT window.start AS start, count(DISTINCT v) AS n, percentile(v, 0.9) AS high
  FROM stream [RANGE 45 SECONDS SLIDE AT MOST 15 SECONDS];
"""
JOINING = {
    "past": "SELECT k, window.start AS start, sum(v) AS total, min(v) AS least \
FROM stream GROUP BY k, window(ts, '20 seconds', '4 seconds')",
    "part": "SELECT window.start AS start, count(*) AS n \
FROM stream WHERE v < 50 GROUP BY window(ts, '14 seconds', '7 seconds')",
}
JOINING_BEGIN = {"past": None, "part": "2024-03-01 00:00:20"}
"""Queries that join while the job runs and read the source again, and from when on."""
SCHEMA = "ts TIMESTAMP, k STRING, v INT"
WORKLOADS: dict[str, tuple[str, dict[str, Any]]] = {
    "every": (QUERIES, {"available_now": True}),
    "source": (QUERIES, {"available_now": True}),
    # A trigger that leaves little time, and no patience beyond it: who is refreshed hangs on what was measured, and
    # periods stretch.
    "at_most": (AT_MOST, {"trigger": "300 milliseconds"}),
}


def main(folder: str, workload: str = "every") -> None:
    spark = local_session({"spark.driver.memory": "1g"})
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(f"{folder}/rows")
    queries, how = WORKLOADS[workload]
    pace.PATIENCE = 0.0
    run = weave(stream, queries, watermark="20 seconds").start(
        sink=f"parquet:{folder}/answers", checkpoint=f"{folder}/state", **how
    )
    here = Path(urlsplit(folder).path)
    files = len(list((here / "rows").iterdir()))
    told, ended = 0, False
    while not ended:
        ended = run.wait(0.02)
        for batch in run.batches()[told:]:
            print("batch", batch.batch, flush=True)
            told += 1
            if workload == "source" and batch.batch >= 1:
                for name in JOINING.keys() - set(run.queries()):
                    run.add(f"CREATE VIEW {name} AS {JOINING[name]}", since="source", begin=JOINING_BEGIN[name])
            ended = ended or batch.batch == files - 1
    (here / "refreshes.json").write_text(json.dumps(run.metrics()["refreshes_by_query"]))
    run.drain()


if __name__ == "__main__":
    main(*sys.argv[1:])
