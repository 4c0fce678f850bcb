"""Against a real Postgres: a batch is there once and whole, whoever is killed, and a table shows what holds."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support import ROOT
from tests.support.compare import assert_same_rows
from tests.support.killing import KEYS
from tests.support.postgres import NoServer, Postgres, postgres
from tests.support.resumable import QUERIES, SCHEMA
from tests.support.streams import write_rows
from weft.engine import Layout
from weft.engine.layout import MARKS
from weft.spark import RunFailed, weave
from weft.spark.sinks import postgres as module
from weft.spark.sinks.base import OtherColumns
from weft.spark.sinks.open import make_sink
from weft.spark.sinks.postgres import PostgresSink
from weft.spark.sinks.postgres_table import PostgresFailed
from weft.spark.sinks.row_key import CannotTell
from weft.sql import parse

psycopg = pytest.importorskip("psycopg", reason="the Postgres sink needs psycopg: pip install 'weft[postgres]'")

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    try:
        with postgres() as started:
            yield started
    except NoServer as error:
        pytest.skip(str(error))


@pytest.fixture
def url(server: Postgres, request: Any) -> str:
    """A schema of the test's own."""
    name = f"t{abs(hash(request.node.name))}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{server.url}?options=-csearch_path%3D{name}"


def ask(url: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, options=_zone(url)) as connection:
        return connection.execute(query).fetchall()


def _zone(url: str) -> str:
    given = url.partition("options=")[2].replace("%3D", "=")
    return f"{given} -ctimezone=UTC"


def start(spark: Any, folder: Path, sink: Any) -> Any:
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "rows"))
    return weave(stream, QUERIES, watermark="20 seconds").start(
        sink=sink, checkpoint=folder / "state", available_now=True
    )


def assert_answers(spark: Any, folder: Path, url: str) -> None:
    rows = spark.read.schema(SCHEMA).parquet(str(folder / "rows"))
    spark.createDataFrame(rows.toArrow()).createOrReplaceTempView("stream")
    for query in parse(QUERIES):
        wanted = spark.sql(query.spark_sql.replace("last(v)", "max_by(v, ts)")).toArrow()
        quoted = ", ".join(f'"{name}"' for name in wanted.column_names)
        columns = zip(*ask(url, f"SELECT {quoted} FROM {query.name}"), strict=True)
        found = [pa.array(column, field.type) for column, field in zip(columns, wanted.schema, strict=True)]
        table = pa.table(found, wanted.column_names)
        assert_same_rows(table, wanted, key=KEYS[query.name], text=query.text)


def test_a_batch_that_was_written_and_not_recorded_is_not_written_again(spark: Any, tmp_path: Path, url: str) -> None:
    write_rows(tmp_path / "rows", files=8, rows=40)
    life = [sys.executable, "-m", "tests.support.postgres_life", str(tmp_path), url]
    with (tmp_path / "said.txt").open("w") as said:
        ended = subprocess.run(
            life, stdout=said, stderr=said, cwd=ROOT, start_new_session=True, timeout=300, check=False
        )
    assert ended.returncode == -signal.SIGKILL, (tmp_path / "said.txt").read_text()[-3000:]
    written = {(q, r) for q in KEYS for r in ask(url, f"SELECT xmin::text, t::text FROM {q} t")}
    assert written
    assert ask(url, "SELECT batch FROM weft_batches") == [(3,)]
    run = start(spark, tmp_path, url)
    run.wait()
    run.drain()
    after = {(q, r) for q in KEYS for r in ask(url, f"SELECT xmin::text, t::text FROM {q} t")}
    assert written <= after, "rows of the batch that was repeated are as its first transaction left them"
    assert ask(url, "SELECT batch FROM weft_batches") == [(run.metrics()["batch"],)]
    assert_answers(spark, tmp_path, url)


def test_a_batch_that_fails_half_way_leaves_nothing_and_a_restart_repeats_it(
    spark: Any, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rows(tmp_path / "rows", files=6, rows=40)
    whole = module.write_answers
    seen: list[str] = []

    def half(connection: Any, table: Any, answers: Any) -> None:
        whole(connection, table, answers)
        seen.append(table.name)
        if len(seen) == 4:
            raise psycopg.DataError("no more of this")

    monkeypatch.setattr(module, "write_answers", half)
    with pytest.raises(RunFailed, match=r"batch \d: Postgres at 127.0.0.1.*no more of this.*again; nothing is lost"):
        start(spark, tmp_path, url).wait()
    ((last,),) = ask(url, "SELECT batch FROM weft_batches")
    monkeypatch.undo()
    run = start(spark, tmp_path, url)
    assert run.wait()
    run.drain()
    assert run.metrics()["batch"] > last
    assert_answers(spark, tmp_path, url)


TYPED = """
CREATE VIEW typed AS SELECT k, window, count(*) AS n, sum(d) AS dec, max(f) AS f, max(ts) AS at,
  max(CAST(ts AS DATE)) AS day, max(s) AS s, bool_or(v > 1) AS any, max(CAST(v AS SMALLINT)) AS small
  FROM stream GROUP BY k, window(ts, '10 seconds')
"""


def layout_of(spark: Any, query: str) -> Layout:
    columns = "k STRING, v INT, d DECIMAL(10,2), f FLOAT, s STRING, ts TIMESTAMP"
    return weave(spark.createDataFrame([], columns), query).physical.layout


def schema_of(layout: Layout, *, marked: bool = False) -> pa.Schema:
    (query,) = layout.queries
    return pa.schema([*query.schema, *(MARKS if marked else ())])


AT = datetime(2024, 3, 1, tzinfo=UTC)


def answer(schema: pa.Schema, **cells: Any) -> pa.Table:
    some = {"k": "a", "window": {"start": AT, "end": AT}, "n": 1, "dec": Decimal("1.50"), "f": 0.5, "at": AT}
    some |= {"day": AT.date(), "s": 'tab\t \\ and "quotes" ü', "any": True, "small": 7}
    return pa.Table.from_pylist([{**some, **cells}], schema=schema)


def test_types_nulls_and_texts_come_out_as_they_went_in(spark: Any, url: str) -> None:
    layout = layout_of(spark, TYPED)
    sink = PostgresSink(url)
    sink.open(layout)
    schema = schema_of(layout)
    unknown = answer(schema, k=None, f=float("nan"), s=None, day=None)
    sink.take(0, {"typed": pa.concat_tables([answer(schema), unknown])})
    sink.take(1, {"typed": answer(schema, k=None, n=5)})
    names = 'k, n, window_start, window_end, dec, f, at, day, s, "any", small'
    assert ask(url, f"SELECT {names} FROM typed ORDER BY n") == [
        ("a", 1, AT, AT, Decimal("1.50"), 0.5, AT, AT.date(), 'tab\t \\ and "quotes" ü', True, 7),
        (None, 5, AT, AT, Decimal("1.50"), 0.5, AT, AT.date(), 'tab\t \\ and "quotes" ü', True, 7),
    ], "a group without a key is one group: its answer was replaced"
    PostgresSink(url).open(layout)


def test_a_revision_takes_the_place_of_an_answer_and_a_retraction_removes_it(spark: Any, url: str) -> None:
    layout = layout_of(spark, TYPED)
    schema = schema_of(layout, marked=True)
    (query,) = layout.queries
    marked = layout.with_trees(lambda tree: _with_schema(tree, schema))
    sink = PostgresSink(url)
    sink.open(marked)
    first = {"weft_revision": 0, "weft_retracted": False}
    sink.take(0, {query.name: pa.concat_tables([answer(schema, **first), answer(schema, k=None, **first)])})
    again = {"weft_revision": 1}
    sink.take(1, {query.name: pa.concat_tables([
        answer(schema, n=9, weft_retracted=False, **again), answer(schema, k=None, weft_retracted=True, **again)
    ])})  # fmt: skip
    assert ask(url, "SELECT k, n, weft_revision FROM typed") == [("a", 9, 1)]
    sink.take(1, {query.name: answer(schema, n=100, weft_retracted=False, **again)})
    assert ask(url, "SELECT k, n, weft_revision FROM typed") == [("a", 9, 1)], "batch 1 has been written"


def _with_schema(tree: Any, schema: pa.Schema) -> Any:
    from dataclasses import replace

    return replace(tree, queries=tuple(replace(q, schema=schema) for q in tree.queries))


def test_a_table_that_does_not_fit_is_refused(spark: Any, url: str) -> None:
    layout = layout_of(spark, "CREATE VIEW q AS SELECT k, window.start AS start, count(*) AS n \
FROM stream GROUP BY k, window(ts, '1 minute')")  # fmt: skip
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE q (k text, start timestamptz, n text)")
        with pytest.raises(OtherColumns, match=r"q exists with other columns .*n text.*gives n bigint; .* name"):
            PostgresSink(url).open(layout)
        connection.execute("ALTER TABLE q ALTER n TYPE bigint USING n::bigint, ADD more int")
        with pytest.raises(OtherColumns, match=r"add it with ALTER TABLE .* UNIQUE NULLS NOT DISTINCT"):
            PostgresSink(url).open(layout)
        connection.execute('ALTER TABLE "q" ADD UNIQUE NULLS NOT DISTINCT (start, k)')
        PostgresSink(url).open(layout)
    nameless = layout_of(spark, "SELECT count(*) AS n FROM stream GROUP BY k, window(ts, '1 minute')")
    with pytest.raises(CannotTell, match="does not select its window and all its group keys"):
        PostgresSink(url).open(nameless)


def test_a_server_that_went_is_waited_for_and_one_that_stays_away_fails_the_batch(
    spark: Any, server: Postgres, url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    layout = layout_of(spark, TYPED)
    schema = schema_of(layout)
    sink = make_sink(url)
    assert isinstance(sink, PostgresSink)
    sink.open(layout)
    sink.take(0, {"typed": answer(schema)})
    ask(server.url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'weft'")
    sink.take(1, {"typed": answer(schema, n=2)})
    assert ask(url, "SELECT n FROM typed") == [(2,)]
    monkeypatch.setattr(module, "PAUSES", (0.01,))
    server.stop()
    try:
        with pytest.raises(PostgresFailed, match=r"batch 2: Postgres at 127.0.0.1, .*start again; nothing is lost"):
            sink.take(2, {"typed": answer(schema, n=3)})
    finally:
        server.start()
    assert caplog.messages[-1] == "Postgres is tried again: batch=2, after_seconds=0.01"
    sink.take(2, {"typed": answer(schema, n=3)})
    assert ask(url, "SELECT n FROM typed") == [(3,)]
    assert ask(url, "SELECT batch FROM weft_batches") == [(2,)]
