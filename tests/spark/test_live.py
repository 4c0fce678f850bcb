"""Queries come and go while the job runs: each gives the windows of its time, once, across restarts too."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compare import assert_same_rows
from weft.spark import weave
from weft.spark.live import CannotChange
from weft.sql import Refused, parse

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCHEMA = "ts TIMESTAMP, k STRING, v INT"
FIRST = """
CREATE VIEW by_key AS SELECT k, window.start AS start, count(*) AS n, sum(v) AS total
  FROM stream GROUP BY k, window(ts, '30 seconds', '7 seconds');
CREATE VIEW overall AS SELECT window.start AS start, count(*) AS n, avg(v) AS mean
  FROM stream WHERE v > 10 GROUP BY window(ts, '10 seconds', '5 seconds');
"""
LATER = "CREATE VIEW later AS SELECT k, window.start AS start, max(v) AS top, count(*) AS n \
FROM stream GROUP BY k, window(ts, '20 seconds', '4 seconds')"
FROM_STATE = "CREATE VIEW reaching AS SELECT k, window.start AS start, count(*) AS n \
FROM stream GROUP BY k, window(ts, '14 seconds', '7 seconds')"
KEYS = {"by_key": (0, 1), "overall": (0,), "later": (0, 1), "reaching": (0, 1)}
SECONDS = 15
BEGIN = 1_709_251_200_000_000


class Stream:
    """Files of fifteen seconds each, written when their time has come; rows up to fifteen seconds late."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder, self.written = spark, folder, 0
        (folder / "rows").mkdir(parents=True)
        self.random = Random(7)

    def write(self, files: int, rows: int = 40) -> None:
        for _ in range(files):
            i = self.written
            span = range((i - 1) * SECONDS * 1_000_000, (i + 1) * SECONDS * 1_000_000)
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

    def start(self, queries: str = FIRST) -> Any:
        rows = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(self.folder / "rows"))
        job = weave(rows, queries, watermark=f"{SECONDS + 5} seconds")
        return job.start(sink=f"parquet:{self.folder / 'answers'}", checkpoint=self.folder / "state")

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


def text_of(name: str, texts: Sequence[str] = (FIRST, LATER, FROM_STATE)) -> str:
    return next(q.text for text in texts for q in parse(text) if q.name == name)


def settle(run: Any) -> None:
    run.query.processAllAvailable()


def latest(stream: Stream, files: int) -> int:
    parts = [pq.read_table(stream.folder / "rows" / f"{i:04d}.parquet") for i in range(files)]
    return max(part.column("ts").cast(pa.int64()).to_numpy().max() for part in parts)


@pytest.fixture
def stream(spark: Any, tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


def test_queries_join_and_leave_a_running_job_and_nobody_loses_a_window(stream: Stream) -> None:
    stream.write(4)
    run = stream.start()
    settle(run)
    assert run.add(LATER) == ["later"]
    cut = latest(stream, 4)
    stream.write(3)
    settle(run)
    run.drop("overall")
    watermark = run.checkpoint.newest().watermark
    stream.write(4)
    settle(run)
    assert run.queries() == ["by_key", "later"]
    run.drain()
    for name, limits in {"by_key": {}, "later": {"since": cut + 1}, "overall": {"until": watermark}}.items():
        found = stream.answers(name)
        assert_same_rows(found, expected(stream, text_of(name), **limits), key=KEYS[name], text=name)
    assert [c["reason"] for c in run.changes()] == ["woven", "added later", "dropped overall"]


def test_a_query_may_see_what_the_kept_slices_hold(stream: Stream) -> None:
    stream.write(5)
    run = stream.start()
    settle(run)
    run.add(FROM_STATE, since="state")
    now = latest(stream, 5)
    stream.write(3)
    settle(run)
    since = run._live.since("reaching")
    assert since is not None
    assert since < now - 14_000_000, "windows of rows that came before it joined"
    run.drain()
    assert_same_rows(
        stream.answers("reaching"), expected(stream, FROM_STATE, since=since), key=KEYS["reaching"], text="reaching"
    )


def test_a_restart_keeps_who_joined_and_leaves_out_who_left(stream: Stream) -> None:
    stream.write(3)
    run = stream.start()
    settle(run)
    cut = latest(stream, 3)
    run.add(LATER)
    stream.write(2)
    settle(run)
    run.drop("overall")
    stream.write(1)
    settle(run)
    run.stop()
    stream.write(3)
    again = stream.start()
    settle(again)
    assert again.queries() == ["by_key", "later"]
    again.drain()
    for name, limits in {"by_key": {}, "later": {"since": cut + 1}}.items():
        found = stream.answers(name)
        assert_same_rows(found, expected(stream, text_of(name), **limits), key=KEYS[name], text=name)


def test_a_restart_with_other_queries_changes_the_plan(stream: Stream) -> None:
    stream.write(3)
    run = stream.start()
    settle(run)
    run.stop()
    cut = latest(stream, 3)
    again = stream.start(f"{parse(FIRST)[0].text}; {LATER}")
    stream.write(3)
    settle(again)
    assert again.changes()[-1]["reason"] == "restarted, added later, dropped overall"
    again.drain()
    for name, limits in {"by_key": {}, "later": {"since": cut + 1}}.items():
        found = stream.answers(name)
        assert_same_rows(found, expected(stream, text_of(name), **limits), key=KEYS[name], text=name)


def test_changes_that_cannot_be_are_refused_and_the_job_goes_on(stream: Stream) -> None:
    stream.write(1)
    run = stream.start()
    settle(run)
    with pytest.raises(CannotChange, match="there is a query overall already"):
        run.add(text_of("overall"))
    with pytest.raises(CannotChange, match="there is no query nobody; there are by_key, overall"):
        run.drop("nobody")
    with pytest.raises(CannotChange, match="stop it instead"):
        run.drop("by_key", "overall")
    with pytest.raises(Refused, match="cannot be resolved"):
        run.add("SELECT max(nothing) AS x FROM stream GROUP BY window(ts, '2 seconds')")
    assert run.queries() == ["by_key", "overall"]
    stream.write(1)
    settle(run)
    assert (run.active, run.metrics()["rows"]) == (True, 80)
    assert [c["reason"] for c in run.changes()] == ["woven"]
    run.stop()


def test_a_query_is_replaced_without_a_gap_and_another_leaves_when_its_life_has_ended(stream: Stream) -> None:
    strict = (
        "SELECT window.start AS start, count(*) AS n, avg(v) AS mean FROM stream WHERE v > 10 "
        "GROUP BY window(ts, '10 seconds', '5 seconds') HAVING count(*) > 6"
    )
    stream.write(4)
    run = stream.start()
    settle(run)
    with pytest.raises(CannotChange, match="give the same columns"):
        run.replace("overall", strict.replace("AS mean", "AS average"))
    watermark, cut = run.checkpoint.newest().watermark, latest(stream, 4) + 1
    run.replace("overall", strict)
    run.add(LATER, for_="30 seconds")
    stream.write(5)
    settle(run)
    since = run._live.since("overall")
    assert since is not None
    assert since - 5_000_000 + 10_000_000 <= watermark < since + 10_000_000, "the first window that was open"
    assert run.queries() == ["by_key", "overall"]
    reasons = [c["reason"] for c in run.changes()]
    assert reasons == ["woven", "replaced overall", "added later", "the life of later began", "the life of later ended"]
    assert all(c["cost_after"] > 0 for c in run.changes())
    run.drain()
    old, new = expected(stream, text_of("overall"), until=watermark), expected(stream, strict, since=since)
    assert old.num_rows
    assert new.num_rows
    assert_same_rows(stream.answers("overall"), pa.concat_tables([old, new]), key=KEYS["overall"], text="overall")
    assert_same_rows(stream.answers("by_key"), expected(stream, text_of("by_key")), key=KEYS["by_key"], text="by_key")
    lived = expected(stream, LATER, since=cut, until=cut + 30_000_000)
    assert_same_rows(stream.answers("later"), lived, key=KEYS["later"], text="later")
