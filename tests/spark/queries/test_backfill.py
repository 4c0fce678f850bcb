"""A query that reads the source again gives every window of it, once, however the job goes on meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tests.support.compare import assert_same_rows
from tests.support.streams import BEGIN, Stream, expected, settle
from weft.spark.checkpoint.files import CheckpointFileError
from weft.spark.checkpoint.plan_log import write_plan
from weft.spark.errors import RunFailed
from weft.spark.queries.validate import CannotChange
from weft.spark.sinks.parquet import ParquetSink

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FIRST = "CREATE VIEW first AS SELECT k, window.start AS start, count(*) AS n \
FROM stream GROUP BY k, window(ts, '30 seconds', '7 seconds')"
PAST = {
    "whole": "SELECT k, window.start AS start, max(v) AS top, sum(v) AS total \
FROM stream GROUP BY k, window(ts, '20 seconds', '4 seconds')",
    "some": "SELECT window.start AS start, avg(v) AS mean \
FROM stream WHERE v > 10 GROUP BY window(ts, '14 seconds', '7 seconds')",
}
KEYS = {"whole": (0, 1), "some": (0,), "first": (0, 1)}


@pytest.fixture
def stream(spark: Any, tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


def until_nobody_waits(stream: Stream, run: Any) -> None:
    begun = time.monotonic()
    while run.metrics()["waiting"]:
        assert time.monotonic() - begun < 300, run.changes()
        stream.write(1)
        settle(run)


def assert_answers(stream: Stream, sinces: dict[str, int | None]) -> None:
    for name, since in sinces.items():
        text = PAST.get(name, FIRST)
        wanted = expected(stream, text, since=since)
        assert wanted.num_rows
        assert_same_rows(stream.answers(name), wanted, key=KEYS[name], text=name)


def test_queries_read_the_source_again_and_go_on_with_the_stream(stream: Stream) -> None:
    stream.write(4)
    run = stream.start(FIRST)
    settle(run)
    begin = BEGIN + 20_000_000
    run.add(f"CREATE VIEW whole AS {PAST['whole']}", since="source")
    run.add(f"CREATE VIEW some AS {PAST['some']}", since="source", begin="2024-03-01 00:00:20")
    with pytest.raises(CannotChange, match="still has a backfill"):
        run.replace("whole", PAST["whole"])
    stream.write(1)
    settle(run)
    until_nobody_waits(stream, run)
    assert sum("finished the backfill" in c["reason"] for c in run.changes()) >= 1
    stream.write(1)
    settle(run)
    run.drain()
    assert_answers(stream, {"first": None, "whole": None, "some": begin})
    assert not list((stream.folder / "state" / "replays").iterdir())


def stopped_while_it_waits(stream: Stream) -> Any:
    """A run that a batch has taken up a query in which joins from the source, and that was stopped then."""
    stream.write(3)
    run = stream.start(FIRST)
    settle(run)
    run.add(f"CREATE VIEW whole AS {PAST['whole']}", since="source")
    stream.write(1)
    settle(run)
    run.stop()
    return run


def test_a_restart_reads_the_past_that_a_query_still_waits_for(stream: Stream) -> None:
    stopped_while_it_waits(stream)
    for done in (stream.folder / "state" / "replays").glob("whole-*/done.json"):
        done.unlink()
    run = stream.start(FIRST)
    assert run.metrics()["waiting"] == ["whole"]
    stream.write(1)
    settle(run)
    run.drain()
    assert_answers(stream, {"first": None, "whole": None})


def test_a_query_that_waits_may_be_dropped_and_another_of_its_name_gets_a_past_of_its_own(stream: Stream) -> None:
    stream.write(2)
    run = stream.start(FIRST)
    settle(run)
    with pytest.raises(CannotChange, match="begin is for since="):
        run.add(f"CREATE VIEW whole AS {PAST['whole']}", begin="2024-03-01 00:00:20")
    run.add(f"CREATE VIEW whole AS {PAST['whole']}", since="source")
    stream.write(1)
    settle(run)
    run.drop("whole")
    assert run.metrics()["waiting"] == []
    other = PAST["whole"].replace("FROM stream", "FROM stream WHERE v > 50")
    run.add(f"CREATE VIEW whole AS {other}", since="source")
    stream.write(1)
    settle(run)
    until_nobody_waits(stream, run)
    run.drain()
    assert_answers(stream, {"first": None})
    assert_same_rows(stream.answers("whole"), expected(stream, other), key=KEYS["whole"], text="whole")
    assert not list((stream.folder / "state" / "replays").iterdir()), "also what was read for the one that was dropped"


def test_a_query_that_joins_from_the_source_just_before_a_drain_gives_all_of_it(stream: Stream) -> None:
    stream.write(3)
    run = stream.start(FIRST)
    settle(run)
    run.add(f"CREATE VIEW whole AS {PAST['whole']}", since="source")
    run.add(f"CREATE VIEW some AS {PAST['some']}", since="source", begin="2024-03-01 00:00:20")
    run.drain()
    assert_answers(stream, {"first": None, "whole": None, "some": BEGIN + 20_000_000})
    assert not list((stream.folder / "state" / "replays").iterdir())
    with pytest.raises(CannotChange, match=r"was drained.*would answer nothing; add it before"):
        run.add(f"CREATE VIEW more AS {PAST['some']}", since="source")
    again = stream.start(FIRST)
    with pytest.raises(CannotChange, match="was drained"):
        again.add(f"CREATE VIEW more AS {PAST['some']}", since="source")
    again.stop()


class StuckQuery:
    """Spark's query of a backfill whose source returns no row."""

    def __init__(self) -> None:
        self.stops = 0
        self.on_wait: Callable[[], None] = lambda: None

    def awaitTermination(self, seconds: float) -> bool:
        self.on_wait()
        time.sleep(0.01)
        return False

    def stop(self) -> None:
        self.stops += 1


def in_backfill() -> bool:
    return threading.current_thread().name.startswith("weft-backfill-")


def test_a_past_that_a_stop_has_cut_short_is_read_by_a_drain(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    start, query, stopping = DataStreamWriter.start, StuckQuery(), []
    with monkeypatch.context() as stuck:
        stuck.setattr(DataStreamWriter, "start", lambda writer: query if in_backfill() else start(writer))
        run = stopped_while_it_waits(stream)
        assert run.metrics()["waiting"] == ["whole"]

        def stop_meanwhile() -> None:
            if not stopping:
                stopping.append(threading.Thread(target=run.stop))
                stopping[0].start()

        query.on_wait = stop_meanwhile
        with pytest.raises(RunFailed, match=r"the backfill of whole is not complete.*drain again"):
            run.drain()
        stopping[0].join()
    assert query.stops == 2
    run.drain()
    assert_answers(stream, {"first": None, "whole": None})


def test_a_start_that_fails_reads_no_past_any_more(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    start, query = DataStreamWriter.start, StuckQuery()
    monkeypatch.setattr(DataStreamWriter, "start", lambda writer: query if in_backfill() else start(writer))

    def refuse(*arguments: object) -> StuckQuery:
        if in_backfill():
            return query
        raise CannotChange("not here")

    stopped_while_it_waits(stream)
    assert query.stops == 1
    for starts, (kind, method) in enumerate(((ParquetSink, "open"), (DataStreamWriter, "start")), 2):
        with monkeypatch.context() as refusing:
            refusing.setattr(kind, method, refuse)
            with pytest.raises(CannotChange, match="not here"):
                stream.start(FIRST)
        assert query.stops == starts, method


def test_a_drain_that_found_no_room_for_its_plan_is_tried_again_and_gives_all(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[int] = []

    def write(store: Any, record: Any) -> None:
        if record.completed_backfills and not refused:
            refused.append(record.batch)
            raise CheckpointFileError("the disk is full")
        write_plan(store, record)

    monkeypatch.setattr("weft.spark.queries.versions.write_plan", write)
    stream.write(3)
    run = stream.start(FIRST)
    settle(run)
    run.add(f"CREATE VIEW whole AS {PAST['whole']}", since="source")
    with pytest.raises(CheckpointFileError, match="the disk is full"):
        run.drain()
    assert refused == [3]
    run.drain()
    assert_answers(stream, {"first": None, "whole": None})
