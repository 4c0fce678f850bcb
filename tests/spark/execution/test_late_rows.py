"""Late rows, idle and skewed sources, slices that are kept longer, and questions that are asked of them."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.support.compare import assert_same_rows
from tests.support.streams import BEGIN, Stream, expected, first_window, settle
from weft.engine import FOREVER
from weft.engine.final.lateness import MissedWindows
from weft.model import Window
from weft.spark.adhoc import CannotAsk
from weft.spark.checkpoint.batch_log import BatchLog, BatchRecord
from weft.spark.execution.micro_batch import MicroBatchRunner
from weft.spark.options import BadOptions, TimeOptions
from weft.spark.sinks.late_rows import BadLateSink, make_late_sink

BY_KEY = "SELECT k, window.start AS start, count(*) AS n, sum(v) AS total FROM stream \
GROUP BY k, window(ts, '30 seconds', '7 seconds')"
SHORT = "SELECT window.start AS start, count(*) AS n FROM stream GROUP BY window(ts, '2 seconds', '1 second')"
MINUTE = 60_000_000


@pytest.fixture
def stream(spark: Any, tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


@pytest.mark.spark
@pytest.mark.slow
def test_a_question_is_answered_from_the_slices_that_are_kept(stream: Stream) -> None:
    stream.write(10)
    run = stream.start(f"CREATE VIEW by_key AS {BY_KEY}", retention="1 minute")
    with pytest.raises(CannotAsk, match="no batch has been run"):
        run.ask(BY_KEY)
    settle(run)
    watermark = run.checkpoint.batches.newest().watermark
    other = BY_KEY.replace("30 seconds", "14 seconds")
    coarser = "SELECT window.start AS start, sum(v) AS total FROM stream \
GROUP BY window(ts, '21 seconds', '7 seconds', '2 seconds')"
    for text, key in ((BY_KEY, (0, 1)), (other, (0, 1)), (coarser, (0,))):
        found = run.ask(text)
        earliest = pc.min(found.column("start")).cast(pa.int64()).as_py()
        assert earliest <= watermark - MINUTE
        assert_same_rows(found, expected(stream, text, since=earliest, until=watermark), key=key, text=text)
    for text, said in (
        (BY_KEY.replace("sum(v)", "max(v)"), "none hold all of its aggregates"),
        (BY_KEY.replace("7 seconds", "4 seconds"), "none are cut where its windows begin and end"),
        (BY_KEY.replace("GROUP", "WHERE v > 5 GROUP"), "none say which rows pass v > 5"),
        (BY_KEY.replace(" k,", " v,"), "none are grouped by v"),
        (f"{BY_KEY} FOR 8 HOURS", "has no TTL"),
        (f"CREATE VIEW a AS {BY_KEY}; CREATE VIEW b AS {SHORT}", "one query is asked at a time, not 2"),
    ):
        with pytest.raises(CannotAsk, match=said):
            run.ask(text)
    run.add(f"CREATE VIEW past AS {other}", since="state")
    stream.write(1)
    settle(run)
    since = first_window(run, "past")
    assert since is not None
    assert since <= watermark - MINUTE
    run.drain()
    assert_same_rows(stream.answers("past"), expected(stream, other, since=since), key=(0, 1), text="past")
    with pytest.raises(CannotAsk, match="was drained"):
        run.ask(BY_KEY)


@pytest.mark.spark
@pytest.mark.slow
def test_answers_are_sent_again_when_late_rows_come_for_them(stream: Stream) -> None:
    stream.write(6)
    run = stream.start(f"CREATE VIEW by_key AS {BY_KEY}", watermark=0, late="update", allowed_lateness="1 minute")
    settle(run)
    run.stop()
    stream.write(2)
    run = stream.start(f"CREATE VIEW by_key AS {BY_KEY}", watermark=0, late="update", allowed_lateness="1 minute")
    settle(run)
    run.drain()
    answers = stream.answers("by_key")
    revisions = answers.column("weft_revision").to_pylist()
    assert sum(revisions) > 0
    assert not any(answers.column("weft_retracted").to_pylist())
    newest: dict[Any, Any] = {}
    for row in sorted(answers.to_pylist(), key=lambda row: row["weft_revision"]):
        newest[row["k"], row["start"]] = row
    table = pa.Table.from_pylist(list(newest.values()), answers.schema).drop(["weft_revision", "weft_retracted"])
    assert_same_rows(table, expected(stream, BY_KEY), key=(0, 1), text="by_key")
    assert run.metrics()["late"] == 0


@pytest.mark.spark
@pytest.mark.slow
def test_late_rows_go_to_a_sink_of_their_own(stream: Stream) -> None:
    stream.write(6)
    texts = f"CREATE VIEW by_key AS {BY_KEY}; CREATE VIEW high AS {SHORT.replace('GROUP', 'WHERE v > 80 GROUP')}"
    run = stream.start(texts, watermark=0, late="side", late_sink=f"parquet:{stream.folder / 'late'}")
    settle(run)
    counted = run.metrics()["late_by_query"]
    run.drain()
    side = stream.spark.read.parquet(str(stream.folder / "late")).toArrow()
    assert side.schema.names == ["ts", "k", "v", "weft_batch"]
    answered = pc.sum(stream.answers("high").column("n")).as_py()
    rows = stream.table()
    high, late_high = (t.filter(pc.greater(t.column("v"), 80)).num_rows for t in (rows, side))
    assert late_high == counted["high"]
    assert 2 * (high - late_high) <= answered < 2 * high, "a row that missed one window may be in the other"
    assert max(counted.values()) <= side.num_rows <= sum(counted.values())


@pytest.mark.spark
def test_the_side_output_and_the_counters_agree_on_a_query_whose_life_has_ended(stream: Stream) -> None:
    text = f"{SHORT} UNTIL '2024-03-01 00:00:20'"
    stream.write(1, seconds=(0, 60))
    stream.write(1, seconds=(0, 40))  # half of them are in windows that the query does not answer any more
    run = stream.start(
        f"CREATE VIEW short AS {text}", watermark=0, late="side", late_sink=f"parquet:{stream.folder}/late"
    )
    settle(run)
    counted = run.metrics()["late_by_query"]
    run.stop()
    side = stream.spark.read.parquet(str(stream.folder / "late")).toArrow()
    late = side.column("ts").cast(pa.int64()).to_numpy()
    assert 0 < side.num_rows < 40
    assert late.max() < BEGIN + 20_000_000
    assert counted == {"short": side.num_rows}


@pytest.mark.spark
def test_late_rows_in_sql_are_those_of_numpy(spark: Any) -> None:
    times = np.arange(-60, 90)
    rules = [
        MissedWindows(window, first, last, answered)
        for window in (Window(12, 9), Window(20, 10, 3), Window(7, 7))
        for first in (None, window.begin(1))
        for last in (window.begin(-2), window.begin(2))
        for answered in (None, (10, 10 + window.length))
    ]
    frame = spark.range(-60, 90).orderBy("id")
    found = frame.selectExpr(*(f"{rule.to_sql('id')} AS c{i}" for i, rule in enumerate(rules))).toArrow()
    for rule, column in zip(rules, found.columns, strict=True):
        assert column.to_pylist() == rule.include(times).tolist(), rule


@pytest.mark.spark
@pytest.mark.slow
def test_a_stream_that_pauses_is_answered_and_then_goes_on(stream: Stream) -> None:
    settings: dict[str, Any] = {"watermark": 1, "idle_timeout": "1 second"}
    stream.write(1, seconds=(0, 3))
    run = stream.start(f"CREATE VIEW short AS {SHORT}", **settings)
    settle(run)
    windows = expected(stream, SHORT).num_rows
    begun = time.monotonic()
    while run.metrics()["answers"] < windows and time.monotonic() - begun < 60:
        time.sleep(0.1)
    assert run.metrics()["answers"] == windows
    batch = run.metrics()["batch"]
    assert batch > 0, "batches without rows"
    stream.write(1, seconds=(300, 303))
    settle(run)
    assert run.metrics()["batch"] > batch
    run.stop()
    stream.write(1, seconds=(600, 603))
    run = stream.start(f"CREATE VIEW short AS {SHORT}", **settings)
    settle(run)
    run.drain()
    assert_same_rows(stream.answers("short"), expected(stream, SHORT), key=(0,), text="short")
    stream.write(1, seconds=(900, 903))
    with pytest.raises(Exception, match="was drained"):
        stream.start(f"CREATE VIEW short AS {SHORT}", **settings).wait()


@pytest.mark.spark
@pytest.mark.slow
def test_a_drain_waits_for_the_batch_that_the_clock_has_begun(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    run_idle, newest = MicroBatchRunner.run_idle, BatchLog.newest
    begun, looked, numbers = threading.Event(), threading.Event(), []

    def lasting(self: MicroBatchRunner, spark: Any, before: BatchRecord, watermark: int) -> Any:
        numbers.append(before.batch + 1)
        if watermark != FOREVER:
            begun.set()
            looked.wait(3)  # a drain that does not wait for this batch looks at the records meanwhile
        return run_idle(self, spark, before, watermark)

    def look(self: BatchLog) -> Any:
        found = newest(self)
        if begun.is_set():
            looked.set()
        return found

    monkeypatch.setattr(MicroBatchRunner, "run_idle", lasting)
    monkeypatch.setattr(BatchLog, "newest", look)
    stream.write(1, seconds=(0, 3))
    run = stream.start(f"CREATE VIEW short AS {SHORT}", watermark=1, idle_timeout="1 second")
    settle(run)
    assert begun.wait(60)
    run.drain()
    assert numbers == list(range(1, len(numbers) + 1)), "each batch has a number of its own"
    assert len(numbers) >= 2
    assert_same_rows(stream.answers("short"), expected(stream, SHORT), key=(0,), text="short")


@pytest.mark.spark
def test_no_batch_begins_while_a_run_stops_and_none_runs_when_it_has(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping, begun, told = threading.Event(), threading.Event(), threading.Event()

    def watermark(*arguments: object) -> None:
        """The first thing that a batch without rows asks for."""
        if stopping.is_set():
            begun.set()
            told.wait(30)

    monkeypatch.setattr("weft.spark.execution.stream_execution.while_idle", watermark)
    stream.write(1, seconds=(0, 3))
    run = stream.start(f"CREATE VIEW short AS {SHORT}", watermark=1, idle_timeout="100 milliseconds")
    settle(run)
    stop = run.query.stop

    def slowly() -> None:
        stopping.set()
        begun.wait(2)  # twenty times the time after which the clock would begin one
        stop()

    monkeypatch.setattr(run.query, "stop", slowly)
    run.stop()
    still = begun.is_set()
    told.set()
    assert stopping.is_set()
    assert not still


@pytest.mark.spark
@pytest.mark.slow
def test_a_clock_that_runs_ahead_does_not_move_the_watermark(stream: Stream) -> None:
    ahead = 10**9
    stream.write(1, seconds=(0, 3))
    stream.write(1, rows=1, seconds=(ahead * 4, ahead * 4 + 1))
    stream.write(1, seconds=(3, 6))
    run = stream.start(f"CREATE VIEW short AS {SHORT}", watermark=1, max_skew="1 hour")
    settle(run)
    assert BEGIN + MINUTE > run.checkpoint.batches.newest().watermark > BEGIN
    assert run.metrics()["late"] == 0
    run.drain()
    assert_same_rows(stream.answers("short"), expected(stream, SHORT), key=(0,), text="short")


def test_times_that_do_not_go_together_are_refused() -> None:
    for settings, said in (
        ({"late": "keep"}, "must be drop, update or side, not 'keep'"),
        ({"late": "update"}, "needs the time in which windows are updated"),
        ({"allowed_lateness": "1 hour"}, "with late='drop' no window is updated"),
        ({"retention": "soon"}, "retention: 'soon' is not a duration"),
        ({"retention": "-1 hour"}, "retention cannot be negative"),
        ({"idle_timeout": "0 seconds"}, "leave it out"),
    ):
        with pytest.raises(BadOptions, match=said):
            TimeOptions.of("10 seconds", **settings)
    assert make_late_sink("drop", None) is None
    for late, sink, said in (
        ("drop", "parquet:late", "weave with late='side'"),
        ("side", None, "needs a sink for the late rows"),
        ("side", "kafka:late", "unknown sink for late rows 'kafka:late'"),
    ):
        with pytest.raises(BadLateSink, match=said):
            make_late_sink(late, sink)  # type: ignore[arg-type]
