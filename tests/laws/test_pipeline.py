"""The law of the pipeline: weft, plain Spark and plain loops give the same rows, however the rows arrive."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import sampled_from

from tests.support.compare import allowances, assert_same_rows, spark_answers
from tests.support.soak import SOAK
from tests.support.twin import Call, Fragment, Query, ValueColumn
from tests.support.workloads import DELAYS, SCENES, Case, cases
from weft.spark import Job, Run, weave
from weft.spark.options import LEAST_MEMORY

pytestmark = pytest.mark.spark

ONE_SESSION = settings(
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],  # shrinking would run Spark for hours
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


def a_few_or(many: int) -> pytest.MarkDecorator:
    """So many workloads, or two: Hypothesis begins with the smallest there is, and the second says something."""
    return pytest.mark.parametrize("examples", [2, pytest.param(many * SOAK, marks=pytest.mark.slow)])


def texts(case: Case) -> list[str]:
    return [f"CREATE VIEW {name} AS {text}" for name, text in case.texts.items()]


def bounded(spark: Any, case: Case, phantoms: str, groupings: str) -> Job:
    rows = spark.createDataFrame(case.table)
    return weave(rows, texts(case), event_time="ts", phantoms=phantoms, groupings=groupings, table_memory=LEAST_MEMORY)


@a_few_or(6)
def test_a_bounded_table_gives_the_rows_of_plain_spark_and_of_plain_loops(spark: Any, examples: int) -> None:
    @settings(ONE_SESSION, max_examples=examples)
    @given(
        case=cases(max_queries=40, cql=True),
        phantoms=sampled_from(["always", "auto"]),
        groupings=sampled_from(["lfta", "native"]),
    )
    def same_rows(case: Case, phantoms: str, groupings: str) -> None:
        found = {name: frame.toArrow() for name, frame in bounded(spark, case, phantoms, groupings).answers().items()}
        expected = spark_answers(spark, case.table, case.queries)
        for query in case.queries:
            oracle = case.naive(query)
            rows = found[query.name]
            given = {"magnitudes": allowances(oracle), "key": query.key_positions, "text": query.text}
            assert_same_rows(rows, expected[query.name], **given)
            assert_same_rows(rows, oracle)

    same_rows()


def write_files(folder: Path, tables: list[pa.Table]) -> None:
    """A file a batch; Spark takes files by their time."""
    folder.mkdir(parents=True)
    for i, table in enumerate(tables):
        path = folder / f"{i:04d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_700_000_000 + i, 1_700_000_000 + i))


def stream(spark: Any, folder: Path, case: Case) -> Any:
    return spark.readStream.schema(case.schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def start(
    spark: Any, folder: Path, case: Case, delay: int, technique: str = "auto", phantoms: str = "auto",
    groupings: str = "auto",
) -> Run:  # fmt: skip
    rows, watermark = stream(spark, folder / "rows", case), f"{delay} microseconds"
    job = weave(
        rows, texts(case), event_time="ts", watermark=watermark, technique=technique, phantoms=phantoms,
        groupings=groupings, table_memory=LEAST_MEMORY,
    )  # fmt: skip
    run = job.start(sink="memory", checkpoint=folder / "state", available_now=True)
    assert run.wait(600)
    return run


@a_few_or(6)
def test_batches_with_late_rows_give_the_rows_and_the_drops_of_plain_loops(spark: Any, examples: int) -> None:
    @settings(ONE_SESSION, max_examples=examples)
    @given(
        case=cases(max_queries=12),
        delay=DELAYS,
        technique=sampled_from(["auto", "daba", "slick_deque_non_inv"]),
        phantoms=sampled_from(["always", "never"]),
        groupings=sampled_from(["native", "lfta"]),
    )
    def same_rows(case: Case, delay: int, technique: str, phantoms: str, groupings: str) -> None:
        with TemporaryDirectory() as temporary:
            folder = Path(temporary)
            write_files(folder / "rows", case.tables)
            run = start(spark, folder, case, delay, technique, phantoms, groupings)
            before_drain = run.answers()
            late = run.metrics()["late_by_query"]
            run.drain()
            for query in case.queries:
                oracle = case.naive(query, delay)
                early = [answer for batch in oracle.batches for answer in batch]
                assert before_drain[query.name].num_rows == len(early), query.text
                assert_same_rows(run.answers()[query.name], oracle)
                assert late.get(query.name, 0) == oracle.late, query.text

    same_rows()


def lateness(case: Case) -> int:
    """How far, in microseconds, a row is behind what earlier batches brought, at most; in Spark's milliseconds."""
    greatest, behind = None, 0
    for table in case.tables:
        times = [t for t in table.column("ts").cast(pa.int64()).to_pylist() if t is not None]
        if greatest is not None and times:
            behind = max(behind, greatest - min(times))
        greatest = max([*times, *([] if greatest is None else [greatest])], default=None)
    return -(-behind // 1000) * 1000


SINCE_1970 = SCENES.filter(lambda scene: scene.base > 0 and scene.disorder < 10**15)
"""Spark's watermark begins at 1970: it takes all rows before for late. It also needs rows nearly in order to move."""


@pytest.mark.slow
def test_before_drain_a_stream_without_late_rows_gives_what_sparks_append_mode_gives(spark: Any) -> None:
    emitted = 0

    @settings(ONE_SESSION, max_examples=5)
    @given(case=cases(max_queries=5, without={"first", "last", "unaliased", "count_distinct"}, scenes=SINCE_1970))
    def same_rows(case: Case) -> None:
        nonlocal emitted
        with TemporaryDirectory() as temporary:
            folder, delay = Path(temporary), lateness(case)
            write_files(folder / "rows", case.tables)
            found = start(spark, folder, case, delay).answers()
            session = spark.newSession()
            session.conf.set("spark.sql.session.timeZone", "UTC")
            rows = stream(session, folder / "rows", case)
            rows.withWatermark("ts", f"{delay} microseconds").createOrReplaceTempView("stream")
            for query in case.queries:
                expected = append_mode(session, query, folder)
                given = {"magnitudes": allowances(case.naive(query)), "key": query.key_positions, "text": query.text}
                assert_same_rows(found[query.name], expected, **given)
                emitted += expected.num_rows

    same_rows()
    assert emitted > 100, "too few rows were emitted before the drain to show anything"


def filtered_by_each_call(query: Query) -> Query:
    """The same query without WHERE: each call has its filter, and groups that no row passes for are left out.

    Spark moves a WHERE below its watermark, which then does not see the rows that the filter drops.
    """
    where = query.where
    if where is None:
        return query

    def filtered(call: Call) -> Call:
        inner = call.condition
        if inner is None:
            return replace(call, condition=where)
        both = Fragment(f"({inner.sql}) AND ({where.sql})", lambda row: inner.of(row) is True and where.of(row) is True)
        return replace(call, condition=both)

    def column(found: Any) -> Any:
        return replace(found, calls=tuple(map(filtered, found.calls))) if isinstance(found, ValueColumn) else found

    passed = Call("count_if", (where,))
    if query.having is None:
        having = ValueColumn((passed,), "{0} > 0")
    else:
        calls = (*map(filtered, query.having.calls), passed)
        having = ValueColumn(calls, f"({query.having.template}) AND {{{len(calls) - 1}}} > 0")
    return replace(query, where=None, columns=tuple(map(column, query.columns)), having=having)


def append_mode(session: Any, query: Any, folder: Path) -> pa.Table:
    name = f"append_{query.name}"
    running = (
        session.sql(filtered_by_each_call(query).spark_sql)
        .writeStream.format("memory")
        .queryName(name)
        .option("checkpointLocation", str(folder / name))
        .trigger(availableNow=True)
        .start()
    )
    running.awaitTermination()
    return session.table(name).toArrow()
