"""Queries come and go while the job runs: each gives the windows of its time, once, across restarts too."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.compare import assert_same_rows
from tests.support.streams import SCHEMA, Stream, expected, first_window, latest, settle
from weft.spark import weave
from weft.spark.errors import RunFailed
from weft.spark.execution.failing_queries import QueriesFailed
from weft.spark.queries.validate import CannotChange
from weft.spark.sinks.base import OtherColumns
from weft.spark.sinks.simple import NoopSink
from weft.sql import Refused, parse

pytestmark = [pytest.mark.spark, pytest.mark.slow]

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


def text_of(name: str, texts: Sequence[str] = (FIRST, LATER, FROM_STATE)) -> str:
    return next(q.text for text in texts for q in parse(text) if q.name == name)


@pytest.fixture
def stream(spark: Any, tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


def test_queries_join_and_leave_a_running_job_and_nobody_loses_a_window(stream: Stream) -> None:
    stream.write(4)
    run = stream.start(FIRST)
    settle(run)
    assert run.add(LATER) == ["later"]
    cut = latest(stream, 4)
    stream.write(3)
    settle(run)
    run.drop("overall")
    watermark = run.checkpoint.batches.newest().watermark
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
    run = stream.start(FIRST)
    settle(run)
    run.add(FROM_STATE, since="state")
    now = latest(stream, 5)
    stream.write(3)
    settle(run)
    since = first_window(run, "reaching")
    assert since is not None
    assert since < now - 14_000_000, "windows of rows that came before it joined"
    run.drain()
    assert_same_rows(
        stream.answers("reaching"), expected(stream, FROM_STATE, since=since), key=KEYS["reaching"], text="reaching"
    )


def test_a_restart_keeps_who_joined_and_leaves_out_who_left(stream: Stream) -> None:
    stream.write(3)
    run = stream.start(FIRST)
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
    again = stream.start(FIRST)
    settle(again)
    assert again.queries() == ["by_key", "later"]
    again.drain()
    for name, limits in {"by_key": {}, "later": {"since": cut + 1}}.items():
        found = stream.answers(name)
        assert_same_rows(found, expected(stream, text_of(name), **limits), key=KEYS[name], text=name)


def test_changes_that_no_batch_has_taken_up_are_there_after_a_restart(stream: Stream) -> None:
    stream.write(3)
    run = stream.start(FIRST)
    settle(run)
    run.add(LATER, for_="8 hours")
    run.add(FROM_STATE, since="state")
    run.drop("overall")
    run.drop("later")
    run.add(LATER)
    run.stop()
    cut = latest(stream, 3)
    again = stream.start(FIRST)
    assert again.queries() == ["by_key", "reaching", "later"]
    assert again.changes()[-1]["reason"] == "restarted, added reaching, later, dropped overall"
    assert again.until("later") is None
    stream.write(3)
    settle(again)
    since = first_window(again, "reaching")
    assert since is not None
    assert since < cut - 14_000_000, "windows of rows that came before it joined"
    assert not again.checkpoint.files.names("asked")
    again.drain()
    for name, limits in {"by_key": {}, "later": {"since": cut + 1}, "reaching": {"since": since}}.items():
        found = stream.answers(name)
        assert_same_rows(found, expected(stream, text_of(name), **limits), key=KEYS[name], text=name)


def test_a_restart_with_other_queries_changes_the_plan(stream: Stream) -> None:
    stream.write(3)
    run = stream.start(FIRST)
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
    run = stream.start(FIRST)
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
    run = stream.start(FIRST)
    settle(run)
    with pytest.raises(CannotChange, match="give the same columns"):
        run.replace("overall", strict.replace("AS mean", "AS average"))
    watermark, cut = run.checkpoint.batches.newest().watermark, latest(stream, 4) + 1
    run.replace("overall", strict)
    run.add(LATER, for_="30 seconds")
    stream.write(5)
    settle(run)
    since = first_window(run, "overall")
    assert since is not None
    assert since - 5_000_000 + 10_000_000 <= watermark < since + 10_000_000, "the first window that was open"
    assert run.queries() == ["by_key", "overall"]
    reasons = [c["reason"] for c in run.changes()]
    assert reasons == ["woven", "replaced overall", "added later", "the TTL of later began", "the TTL of later ended"]
    assert all(c["cost_after"] > 0 for c in run.changes())
    run.drain()
    old, new = expected(stream, text_of("overall"), until=watermark), expected(stream, strict, since=since)
    assert old.num_rows
    assert new.num_rows
    assert_same_rows(stream.answers("overall"), pa.concat_tables([old, new]), key=KEYS["overall"], text="overall")
    assert_same_rows(stream.answers("by_key"), expected(stream, text_of("by_key")), key=KEYS["by_key"], text="by_key")
    lived = expected(stream, LATER, since=cut, until=cut + 30_000_000)
    assert_same_rows(stream.answers("later"), lived, key=KEYS["later"], text="later")


POISON = """
CREATE VIEW on_a_row AS SELECT window.start AS start, max(100 / (v - 50)) AS worst
  FROM stream GROUP BY window(ts, '10 seconds');
CREATE VIEW on_an_answer AS SELECT k, window.start AS start, sum(v) / (count(*) - count(*)) AS worst
  FROM stream GROUP BY k, window(ts, '10 seconds');
"""


def test_queries_that_spark_cannot_answer_leave_and_the_others_go_on(stream: Stream) -> None:
    stream.write(3)
    run = stream.start(FIRST + POISON)
    settle(run)
    assert run.queries() == ["by_key", "overall"]
    run.add("CREATE VIEW later_on_a_row AS SELECT max(CAST(k AS INT)) AS x FROM stream GROUP BY window(ts, '1 second')")
    stream.write(4)
    settle(run)
    failed = run.metrics()["failed"]
    assert set(failed) == {"on_a_row", "on_an_answer", "later_on_a_row"}
    assert "DIVIDE_BY_ZERO" in failed["on_a_row"]
    assert "division by zero" in failed["on_an_answer"]
    assert "CAST_INVALID_INPUT" in failed["later_on_a_row"]
    reasons = [c["reason"] for c in run.changes()]
    assert sum("on_a_row left: " in reason for reason in reasons) == 2
    run.stop()
    run = stream.start(FIRST + POISON)  # their texts are known to fail: they stay away
    settle(run)
    assert run.queries() == ["by_key", "overall"]
    run.drain()
    for name in ("by_key", "overall"):
        assert_same_rows(stream.answers(name), expected(stream, text_of(name)), key=KEYS[name], text=name)


def test_a_job_of_failing_queries_only_fails_and_says_which(stream: Stream) -> None:
    stream.write(3)
    run = stream.start(POISON)
    with pytest.raises(RunFailed, match=r"on_an_answer cannot be answered|DIVIDE_BY_ZERO"):
        run.wait(60)
    rows = stream.spark.read.parquet(str(stream.folder / "rows"))
    with pytest.raises(QueriesFailed, match=r"on_a_row cannot be answered: \[DIVIDE_BY_ZERO"):
        weave(rows, FIRST + POISON).answers()


def test_a_start_that_fails_leaves_no_temporary_checkpoint(
    stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing(NoopSink):
        def open(self, layout: Any) -> None:
            assert list(temporary.iterdir()), "or this tests nothing"
            raise OtherColumns("not here")

    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    rows = stream.spark.readStream.schema(SCHEMA).parquet(str(stream.folder / "rows"))
    with pytest.raises(OtherColumns, match="not here"):
        weave(rows, FIRST).start(sink=Refusing())
    with pytest.raises(ValueError, match="'soon' is not a duration"):
        weave(rows, FIRST).start(trigger="soon")
    assert not list(temporary.iterdir())


def test_groups_are_found_again_whatever_else_joins(stream: Stream) -> None:
    whole = "SELECT window.start AS start, count(*) AS n FROM stream GROUP BY window(ts, '30 seconds', '7 seconds')"
    stream.write(4)
    run = stream.start(f"CREATE VIEW whole AS {whole}")
    settle(run)
    run.add(f"{text_of('by_key')}; {FROM_STATE}", since="state")
    stream.write(3)
    settle(run)
    run.add("CREATE VIEW rest AS SELECT window.start AS start, count(*) AS n FROM stream \
GROUP BY window(ts, '14 seconds', '7 seconds')", since="state")  # fmt: skip
    stream.write(3)
    settle(run)
    sinces = {name: first_window(run, name) for name in ("by_key", "reaching", "rest")}
    run.drain()
    assert_same_rows(stream.answers("whole"), expected(stream, whole), key=(0,), text="whole")
    for name, text in (("by_key", text_of("by_key")), ("reaching", FROM_STATE)):
        assert_same_rows(stream.answers(name), expected(stream, text, since=sinces[name]), key=KEYS[name], text=name)
    rest = whole.replace("30 seconds", "14 seconds")
    assert_same_rows(stream.answers("rest"), expected(stream, rest, since=sinces["rest"]), key=(0,), text="rest")
