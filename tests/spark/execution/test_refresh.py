"""SLIDE AT MOST in a job: every answer is plain Spark's for the window that it names, often enough, and once."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.support.compare import assert_same_rows
from tests.support.killing import live
from tests.support.resumable import AT_MOST as QUERIES
from tests.support.soak import SOAK
from tests.support.streams import BEGIN, Stream, expected, settle
from weft.model.refresh import interval
from weft.schedule import pace
from weft.service import AnswerBuffer, Limits, Service
from weft.service.prometheus import exposition
from weft.spark import RunFailed, weave
from weft.sql import parse

pytestmark = pytest.mark.spark

SECOND = 1_000_000
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


@pytest.mark.parametrize("trigger", [None, pytest.param("1 millisecond", marks=pytest.mark.slow)])
def test_where_batches_follow_each_other_every_refresh_is_on_time(
    spark: Any, tmp_path: Path, trigger: str | None
) -> None:
    stream = Stream(spark, tmp_path)
    stream.write(3)
    run = stream.start(QUERIES, trigger=trigger)
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
    assert metrics["synopsis_bytes"] > 0, "median, percentile and distinct counts keep values"
    exposed = exposition(Service(run, AnswerBuffer(10), Limits())).splitlines()
    often = metrics["refreshes_by_query"]["often"]["refreshes"]
    assert f'weft_query_refreshes_total{{query="often"}} {often}' in exposed
    assert 'weft_query_refresh_late_seconds{query="overall"} 0.0' in exposed
    assert f"weft_synopsis_bytes {metrics['synopsis_bytes']}" in exposed
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


def test_a_batch_that_fails_is_run_again_with_the_same_choice(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no time left for refreshing: who is refreshed hangs on what was measured, and is written down."""
    monkeypatch.setattr(pace, "PATIENCE", 0.0)
    monkeypatch.setattr(pace, "LEAST", 1e-4)
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


@pytest.mark.slow
@pytest.mark.timeout(900 * SOAK)
def test_killed_at_random_moments_every_refresh_that_was_counted_is_in_the_sink_once(
    spark: Any, tmp_path: Path
) -> None:
    kills, random = 2 * SOAK, Random(13)
    stream = Stream(spark, tmp_path)
    stream.write(5 * kills + 3)
    done = [live(tmp_path, random.randint(1, 4), random.uniform(0, 1), "at_most") for _ in range(kills)]
    assert not any(done), "a life that was not cut short tested nothing"
    assert live(tmp_path, None, 0, "at_most")
    counted = json.loads((tmp_path / "refreshes.json").read_text())
    end, refreshes = BEGIN + stream.written * 15 * SECOND, 0
    for name in ("often", "seldom", "overall"):
        found = stream.answers(name)
        assert_answers_of_their_windows(stream, name, found)
        (query,) = (q for q in parse(QUERIES) if q.name == name)
        given = [start for start in starts(found) if start + query.window.length <= counted[name]["answered"]]
        # The first refresh of each was for windows before all rows; those after are in the sink, and no other is.
        assert len(given) == counted[name]["refreshes"] - 1
        refreshes += len(given)
        assert starts(found)[-1] + query.window.length >= end - query.window.slide, "the newest window is missing"
    assert refreshes > 0, "all windows waited for the end of the stream"
    each = QUERIES.split(";")[0]
    assert_same_rows(stream.answers("each"), expected(stream, each), key=KEYS["each"], text=each)


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
