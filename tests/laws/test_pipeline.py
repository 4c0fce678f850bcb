"""The law of the pipeline: weft, plain Spark and plain loops give the same rows, however the rows arrive."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from compare import allowances, assert_same_rows, spark_answers
from weft.spark import Job, Run, weave
from workloads import DELAYS, Case, cases

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ONE_SESSION = settings(
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],  # shrinking would run Spark for hours
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


def texts(case: Case) -> list[str]:
    return [f"CREATE VIEW {name} AS {text}" for name, text in case.texts.items()]


def bounded(spark: Any, case: Case) -> Job:
    return weave(spark.createDataFrame(case.table), texts(case), event_time="ts")


@settings(ONE_SESSION, max_examples=6)
@given(case=cases(max_queries=40, cql=True))
def test_a_bounded_table_gives_the_rows_of_plain_spark_and_of_plain_loops(spark: Any, case: Case) -> None:
    found = {name: frame.toArrow() for name, frame in bounded(spark, case).answers().items()}
    expected = spark_answers(spark, case.table, case.queries)
    for query in case.queries:
        oracle = case.naive(query)
        rows = found[query.name]
        given = {"magnitudes": allowances(oracle), "key": query.key_positions, "text": query.text}
        assert_same_rows(rows, expected[query.name], **given)
        assert_same_rows(rows, oracle)


def write_files(folder: Path, tables: list[pa.Table]) -> None:
    """A file a batch; Spark takes files by their time."""
    folder.mkdir(parents=True)
    for i, table in enumerate(tables):
        path = folder / f"{i:04d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_700_000_000 + i, 1_700_000_000 + i))


def stream(spark: Any, folder: Path, case: Case) -> Any:
    return spark.readStream.schema(case.schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def start(spark: Any, folder: Path, case: Case, delay: int) -> Run:
    job = weave(stream(spark, folder / "rows", case), texts(case), event_time="ts", watermark=f"{delay} microseconds")
    run = job.start(sink="memory", checkpoint=folder / "state", available_now=True)
    assert run.wait(600)
    return run


@settings(ONE_SESSION, max_examples=6)
@given(case=cases(max_queries=12), delay=DELAYS)
def test_batches_with_late_rows_give_the_rows_and_the_drops_of_plain_loops(
    spark: Any, case: Case, delay: int
) -> None:
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_files(folder / "rows", case.tables)
        run = start(spark, folder, case, delay)
        before_drain = run.answers()
        late = run.metrics()["late_by_query"]
        run.drain()
        for query in case.queries:
            oracle = case.naive(query, delay)
            early = [answer for batch in oracle.batches for answer in batch]
            assert before_drain[query.name].num_rows == len(early), query.text
            assert_same_rows(run.answers()[query.name], oracle)
            assert late.get(query.name, 0) == oracle.late, query.text


@settings(ONE_SESSION, max_examples=4)
@given(case=cases(max_queries=5, without={"first", "last"}))
def test_before_drain_a_stream_without_late_rows_gives_what_sparks_append_mode_gives(spark: Any, case: Case) -> None:
    times = [row[0] for row in case.rows if row[0] is not None]
    delay = int((max(times) - min(times)).total_seconds() * 1_000_000) + 1 if times else 1
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_files(folder / "rows", case.tables)
        emitted = start(spark, folder, case, delay).answers()
        session = spark.newSession()
        session.conf.set("spark.sql.session.timeZone", "UTC")
        rows = session.readStream.schema(case.schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "rows"))
        rows.withWatermark("ts", f"{delay} microseconds").createOrReplaceTempView("stream")
        for query in case.queries:
            name = f"append_{query.name}"
            reference = (
                session.sql(query.spark_sql)
                .writeStream.format("memory")
                .queryName(name)
                .option("checkpointLocation", str(folder / name))
                .trigger(availableNow=True)
                .start()
            )
            reference.awaitTermination()
            expected = session.table(name).toArrow()
            given = {"magnitudes": allowances(case.naive(query)), "key": query.key_positions, "text": query.text}
            assert_same_rows(emitted[query.name], expected, **given)
