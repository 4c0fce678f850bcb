"""SLIDE AT MOST in a job: every answer is plain Spark's for the window that it names, often enough, and once."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from streams import BEGIN, Stream, settle

from compare import assert_same_rows
from weft.model.refresh import interval
from weft.service import AnswerBuffer, Limits, Service
from weft.service.prometheus import exposition
from weft.spark import RunFailed, weave
from weft.sql import parse

pytestmark = pytest.mark.spark

SECOND = 1_000_000
QUERIES = """
CREATE VIEW each AS SELECT k, window.start AS start, sum(v) AS total FROM stream [RANGE 20 SECONDS SLIDE 10 SECONDS]
  GROUP BY k;
CREATE VIEW often AS SELECT k, window.start AS start, count(*) AS n, median(v) AS middle
  FROM stream [RANGE 30 SECONDS SLIDE AT MOST 15 SECONDS] GROUP BY k;
CREATE VIEW seldom AS SELECT k, window.start AS start, max(v) AS top, stddev(v) AS spread
  FROM stream [RANGE 1 MINUTE SLIDE AT MOST 20 SECONDS] WHERE v > 10 GROUP BY k HAVING count(*) > 1;
CREATE VIEW overall AS SELECT window.start AS start, count(DISTINCT v) AS n, percentile(v, 0.9) AS high
  FROM stream [RANGE 45 SECONDS SLIDE AT MOST 15 SECONDS];
"""
KEYS = {"each": (0, 1), "often": (0, 1), "seldom": (0, 1), "overall": (0,)}


def starts(table: pa.Table) -> list[int]:
    return sorted(set(table.column("start").cast(pa.int64()).to_pylist()))


def assert_answers_of_their_windows(stream: Stream, name: str, found: pa.Table, queries: str = QUERIES) -> None:
    """What plain Spark gives for windows at every interval, of those the ones that were answered, each once."""
    (query,) = (q for q in parse(queries) if q.name == name)
    session = stream.spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.createDataFrame(stream.table()).createOrReplaceTempView("stream")
    w = query.window
    asked = f"window(ts, '{w.length // SECOND} seconds', '{w.slide // SECOND} seconds')"
    assert asked.replace("60 seconds", "1 minute") in query.spark_sql
    every = asked.replace(f"'{w.slide // SECOND} seconds'", f"'{interval(w) // SECOND} seconds'")
    text = query.spark_sql.replace(asked.replace("60 seconds", "1 minute"), every)
    wanted = ", ".join(map(str, starts(found)))
    assert_same_rows(
        found,
        session.sql(text).where(f"unix_micros(start) IN ({wanted})").toArrow(),
        key=KEYS[name],
        text=text,
    )


EVERY_KIND = """
CREATE VIEW kinds AS SELECT k, window.start AS start, avg(CAST(v AS DECIMAL(9, 2))) AS a, sum(v / 3) AS b, min(k) AS c,
  max_by(v, ts) AS d, min_by(v, ts) AS e, corr(v, v % 7) AS f, covar_pop(v, v % 7) AS g, kurtosis(v) AS h,
  skewness(v) AS i, bit_and(v) AS j, bit_or(v) AS l, bit_xor(v) AS m, bool_and(v > 5) AS n, count_if(v > 5) AS o,
  mode(v, true) AS p, percentile_approx(v, 0.5) AS q, max(CAST(v AS STRING)) AS r, sum(CAST(v AS DECIMAL(9, 2))) AS s
  FROM stream [RANGE 20 SECONDS SLIDE AT MOST 10 SECONDS] GROUP BY k
"""


def test_a_bounded_table_is_answered_at_every_slide_as_plain_spark_does(spark: Any, tmp_path: Path) -> None:
    stream = Stream(spark, tmp_path)
    stream.write(6)
    frame = spark.createDataFrame(stream.table())
    queries = QUERIES + EVERY_KIND
    answers = weave(frame, queries).answers()
    frame.createOrReplaceTempView("stream")
    for query in parse(queries):
        key = KEYS.get(query.name, (0, 1))
        assert_same_rows(answers[query.name].toArrow(), spark.sql(query.spark_sql).toArrow(), key=key, text=query.text)


def test_without_a_trigger_every_refresh_is_on_time(spark: Any, tmp_path: Path) -> None:
    stream = Stream(spark, tmp_path)
    stream.write(3)
    run = stream.start(QUERIES)
    settle(run)
    assert "answers at most a slide apart, at multiples of 15 s" in run.job.explain()
    stream.write(5)
    settle(run)
    metrics = run.metrics()
    assert {name: m["late_seconds"] for name, m in metrics["refreshes_by_query"].items()} == {
        "often": 0, "seldom": 0, "overall": 0,
    }  # fmt: skip
    assert metrics["refreshes"] == sum(m["refreshes"] for m in metrics["refreshes_by_query"].values()) > 12
    assert 0 < metrics["refresh_shared_runs"] <= metrics["refresh_runs"]
    exposed = exposition(Service(run, AnswerBuffer(10), Limits())).splitlines()
    often = metrics["refreshes_by_query"]["often"]["refreshes"]
    assert f'weft_query_refreshes_total{{query="often"}} {often}' in exposed
    assert 'weft_query_refresh_late_seconds{query="overall"} 0.0' in exposed
    assert f"weft_refresh_shared_runs_total {metrics['refresh_shared_runs']}" in exposed
    run.drain()
    for name in ("often", "seldom", "overall"):
        found = stream.answers(name)
        (query,) = (q for q in parse(QUERIES) if q.name == name)
        assert_answers_of_their_windows(stream, name, found)
        assert all(later - earlier <= query.window.slide for earlier, later in pairwise(starts(found)))
        assert starts(found)[0] <= BEGIN
        assert starts(found)[-1] >= BEGIN + 8 * 15 * SECOND - 2 * query.window.slide
    each = stream.answers("each")
    assert len(starts(each)) >= 8 * 15 // 10, "a query that asks for every window gets every window"


def test_a_batch_that_fails_is_run_again_with_the_same_choice(spark: Any, tmp_path: Path) -> None:
    """With a trigger that leaves no time: who is refreshed hangs on what was measured, and is written down."""
    stream = Stream(spark, tmp_path)
    stream.write(9)
    tried: dict[int, list[Any]] = {}

    def take(batch: int, answers: Any, broken: tuple[int, ...] = ()) -> None:
        rows = {name: sorted(map(repr, table.to_pylist())) for name, table in answers.items()}
        tried.setdefault(batch, []).append(rows)
        if batch in broken:
            raise OSError("the cable is out")

    def start(broken: tuple[int, ...]) -> Any:
        rows = spark.readStream.schema("ts TIMESTAMP, k STRING, v INT").option("maxFilesPerTrigger", 1)
        job = weave(rows.parquet(str(tmp_path / "rows")), QUERIES, watermark="20 seconds")
        sink = lambda batch, answers: take(batch, answers, broken)  # noqa: E731
        return job.start(sink=sink, checkpoint=tmp_path / "state", trigger="1 millisecond")

    for broken in ((4,), (6,)):
        run = start(broken)
        with pytest.raises(RunFailed, match="the cable is out"):
            run.wait()
    run = start(())
    settle(run)
    assert run.metrics()["refreshes_by_query"].keys() == {"often", "seldom", "overall"}
    assert max(m["late_seconds"] for m in run.metrics()["refreshes_by_query"].values()) > 0, "there was no overload"
    run.drain()
    assert [len(tried[batch]) for batch in sorted(tried)] == [1, 1, 1, 1, 2, 1, 2, 1, 1, 1]
    assert tried[4][0] == tried[4][1]
    assert tried[6][0] == tried[6][1]
    for name in ("often", "seldom", "overall"):
        rows = [row for batch in sorted(tried) for row in tried[batch][-1].get(name, ())]
        assert len(rows) == len(set(rows)) > 0, "a window was answered twice"


def test_who_joins_is_answered_from_its_first_whole_window_and_a_restart_still_knows(
    spark: Any, tmp_path: Path
) -> None:
    stream = Stream(spark, tmp_path)
    stream.write(4)
    run = stream.start("CREATE VIEW each AS SELECT k, window.start AS start, sum(v) AS total FROM stream "
                       "[RANGE 20 SECONDS SLIDE 10 SECONDS] GROUP BY k")  # fmt: skip
    settle(run)
    often = next(part for part in QUERIES.split(";") if "often" in part)
    run.add(often)
    stream.write(3)
    settle(run)
    run.stop()
    again = stream.start("CREATE VIEW each AS SELECT k, window.start AS start, sum(v) AS total FROM stream "
                         "[RANGE 20 SECONDS SLIDE 10 SECONDS] GROUP BY k")  # fmt: skip
    stream.write(3)
    settle(again)
    assert again.queries() == ["each", "often"]
    again.drain()
    found = stream.answers("often")
    assert_answers_of_their_windows(stream, "often", found)
    assert all(later - earlier <= 15 * SECOND for earlier, later in pairwise(starts(found)))
    assert starts(found)[0] > BEGIN
