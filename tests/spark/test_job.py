"""What users touch: sources, sinks, refusals at registration, metrics, and the number of Spark jobs a batch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import weft
from tests.support.streams import write_rows
from weft.calibration.file import Calibration, calibration_file, save_calibration
from weft.calibration.weights import Weights
from weft.cli import app
from weft.optimizer import CannotOptimize
from weft.spark import NotServed, open_source, weave
from weft.spark.sinks.open import UnknownSink, make_sink
from weft.spark.sources.folder import UnknownSource
from weft.sql import Refused

pytestmark = pytest.mark.spark

COUNTS = "SELECT k, window.start AS start, count(*) AS n FROM stream GROUP BY k, window(ts, '30 seconds', '10 seconds')"


def test_weft_weaves_a_bounded_table_into_dataframes_by_name(spark: Any) -> None:
    table = spark.sql("SELECT timestamp_seconds(id) AS ts, id % 2 AS k FROM range(20)")
    total = "SELECT sum(k) AS s FROM stream [RANGE 10 SECONDS]"
    answers = weft.weave(table, [f"CREATE VIEW counts AS {COUNTS}", total])
    frames = answers.answers()
    assert list(frames) == ["counts", "q2"]
    assert frames["counts"].dtypes == [("k", "bigint"), ("start", "timestamp"), ("n", "bigint")]
    assert sorted(row.s for row in frames["q2"].collect()) == [5, 5]
    assert "tree 2" in answers.explain()
    assert answers.explain("json")["trees"]
    assert "<svg" in answers.explain("html")


def test_intervals_are_intervals_also_in_files_and_what_cannot_be_built_of_them_is_refused(spark: Any) -> None:
    rows = spark.sql(
        "SELECT timestamp_millis(id * 100) AS ts, make_dt_interval(0, 0, 0, id % 5 - 2) AS i, "
        "TIMESTAMP_NTZ '2024-01-01 00:00:00' AS t FROM range(50)"
    )
    rows.createOrReplaceTempView("stream")
    text = "SELECT window.start AS w, {} AS a FROM stream GROUP BY window(ts, '1 second', '300 milliseconds')"
    some = text.format("max(i) AS b, sum(i) AS c, collect_set(i)")
    found, plain = weave(rows, some).answers()["q1"], spark.sql(some)
    assert found.schema.simpleString() == plain.schema.simpleString()
    assert sorted((r.w, r.b, r.c, sorted(r.a)) for r in found.collect()) == sorted(
        (r.w, r.b, r.c, sorted(r.a)) for r in plain.collect()
    )
    for call, said in (("avg(i)", "does not average"), ("histogram_numeric(t, 3)", "timestamp_ntz for histogram")):
        with pytest.raises(Refused, match=said):
            weave(rows, text.format(call))


def test_over_a_bounded_table_a_life_that_ends_at_a_time_does_and_one_of_some_length_is_all_of_it(spark: Any) -> None:
    table = spark.sql("SELECT timestamp_seconds(id) AS ts FROM range(20)")
    total = "SELECT count(*) AS n, window.end AS end FROM stream GROUP BY window(ts, '5 seconds')"
    until, length = weave(table, [f"{total} UNTIL '1970-01-01 00:00:12'", f"{total} FOR 6 SECONDS"]).answers().values()
    assert sorted(row.end.second for row in until.collect()) == [5, 10]
    assert length.count() == 4


def test_windows_that_overlap_much_are_served_though_spark_could_not_write_them_down(spark: Any) -> None:
    table = spark.sql("SELECT timestamp_seconds(id * 100) AS ts, id AS v FROM range(3)")
    text = "SELECT window.start AS start, count(*) AS n, sum(v) AS `a b` FROM stream WHERE v > 0 \
GROUP BY window(ts, '1 day', '1 second') HAVING sum(v) > 1"
    (frame,) = weft.weave(table, [text]).answers().values()
    assert frame.dtypes == [("start", "timestamp"), ("n", "bigint"), ("a b", "bigint")]
    rows = frame.selectExpr("count(*) AS rows", "sum(n) AS n", "min(`a b`) AS least").first()
    assert (rows.rows, rows.n, rows.least) == (86_400, 86_400 + 86_300, 2)


def test_a_job_is_planned_by_seconds_where_the_machine_was_measured(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    table = spark.sql("SELECT timestamp_seconds(id) AS ts, id AS v FROM range(60)")
    queries = [f"SELECT sum(v) AS s FROM stream [RANGE {7 * slide} SECONDS SLIDE {slide} SECONDS]" for slide in (2, 3)]
    with pytest.raises(CannotOptimize, match="weft calibrate"):
        weave(table, queries, cost="seconds")
    save_calibration(
        Calibration(Weights(batch=0, query=0, row=1.0, partial=0, kept=0, operation=0, answer=0)), calibration_file()
    )
    by_seconds = weave(table, queries, strategy="no_share", cost="seconds")
    by_operations = weave(table, queries, strategy="no_share")
    assert (len(by_seconds.plan.feeds), len(by_operations.plan.feeds)) == (1, 2)
    assert "the least of" in by_seconds.explain()
    for name, rows in by_operations.answers().items():
        assert sorted(by_seconds.answers()[name].collect()) == sorted(rows.collect())


@pytest.mark.parametrize("kind", ["json", "csv", "parquet", "orc"])
def test_a_folder_of_files_is_a_source(spark: Any, tmp_path: Path, kind: str) -> None:
    rows = spark.sql("SELECT timestamp_seconds(id) AS ts, concat('k', id % 2) AS k FROM range(40)")
    rows.write.format(kind).options(**({"header": "true"} if kind == "csv" else {})).save(str(tmp_path / "rows"))
    stream = open_source(spark, f"{kind}:{tmp_path / 'rows'}", schema="ts TIMESTAMP, k STRING")
    run = weave(stream, COUNTS).start(checkpoint=tmp_path / "state", available_now=True)
    run.wait()
    run.drain()
    assert sum(run.answers()["q1"].column("n").to_pylist()) == 40 * 3


def test_the_rate_source_moves_the_watermark_and_a_run_can_be_stopped(spark: Any) -> None:
    queries = "SELECT count(*) AS n, window.end AS end FROM stream GROUP BY window(timestamp, '1 second')"
    run = weave(open_source(spark, "rate:100"), queries, event_time="timestamp").start(trigger="1 second")
    while not run.metrics()["answers"]:
        assert not run.wait(0.2)
    run.stop()
    metrics = run.metrics()
    assert metrics["rows"] > 0
    assert metrics["watermark"].endswith("Z")
    assert metrics["lag_seconds"] >= 0
    assert not run.active
    assert run.answers()["q1"].num_rows == metrics["answers"]


def test_a_callback_gets_each_batch_with_the_types_of_the_query(spark: Any, tmp_path: Path) -> None:
    write_rows(tmp_path / "rows", files=4, rows=20)
    got: list[tuple[int, pa.Schema]] = []
    stream = spark.readStream.schema("ts TIMESTAMP, k STRING, v INT").option("maxFilesPerTrigger", 1)
    job = weave(stream.parquet(str(tmp_path / "rows")), COUNTS)

    def take(batch: int, answers: Any) -> None:
        got.extend((batch, table.schema) for table in answers.values())

    run = job.start(sink=take, available_now=True)
    run.wait()
    run.drain()
    assert [batch for batch, _ in got] == sorted({batch for batch, _ in got})
    assert {tuple(map(str, schema.types)) for _, schema in got} == {("string", "timestamp[us, tz=UTC]", "int64")}


def test_the_number_of_spark_jobs_a_batch_does_not_depend_on_queries_or_trees(spark: Any, tmp_path: Path) -> None:
    write_rows(tmp_path / "rows", files=3, rows=20)

    def jobs(name: str, queries: list[str], strategy: str) -> int:
        stream = spark.readStream.schema("ts TIMESTAMP, k STRING, v INT").option("maxFilesPerTrigger", 1)
        job = weave(stream.parquet(str(tmp_path / "rows")), queries, strategy=strategy)
        run = job.start(sink="noop", checkpoint=tmp_path / name, available_now=True)
        run.wait()
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(str(run.query.runId)))

    def many(number: int) -> list[str]:
        return [
            f"SELECT {keys}sum(v) AS s FROM stream WHERE v > {i} "
            f"GROUP BY {keys}window(ts, '{7 + i} seconds', '{1 + i} seconds')"
            for i in range(number)
            for keys in ("", "k, ")
        ]

    counting = 2  # groups are counted on the first batch, and on the third again: twenty rows do not tell
    weighing = 1  # groups are placed before the first batch
    assert jobs("one", [COUNTS], "tri_weave") == 3 * 2 + weighing
    assert jobs("few", many(1), "no_share") == jobs("many", many(6), "no_share") == 3 * 2 + weighing + counting


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT sum(nothing) FROM stream GROUP BY window(ts, '1 hour')", "nothing"),
        ("SELECT sum(k || 'x') FROM stream GROUP BY window(other, '1 hour')", "other"),
        ("SELECT max(m) FROM stream GROUP BY window(ts, '1 hour')", "m"),
    ],
)
def test_what_spark_cannot_analyse_is_refused_at_registration_with_its_place(spark: Any, query: str, said: str) -> None:
    table = spark.sql("SELECT timestamp_seconds(id) AS ts, 'a' AS k, map(1, 2) AS m FROM range(3)")
    with pytest.raises(Refused, match="line 1, column") as refused:
        weave(table, query)
    assert said in str(refused.value)


def test_a_users_function_that_is_left_to_chance_is_refused_with_its_place(spark: Any) -> None:
    from pyspark.sql.functions import udf

    spark.udf.register("dice", udf(lambda x: x, "bigint").asNondeterministic())
    spark.udf.register("same", udf(lambda x: x, "bigint"))
    table = spark.sql("SELECT timestamp_seconds(id) AS ts, id AS v FROM range(3)")
    served = weave(table, "SELECT sum(same(v)) AS s FROM stream GROUP BY window(ts, '1 hour')").answers()["q1"]
    assert [row.s for row in served.collect()] == [3]
    with pytest.raises(Refused, match=r"line 1, column 40: dice\(v\) > 1 gives another value each time"):
        weave(table, "SELECT count(*) AS s FROM stream WHERE dice(v) > 1 GROUP BY window(ts, '1 hour')")
    with pytest.raises(Refused, match="Non-deterministic"):
        weave(table, "SELECT sum(dice(v)) AS s FROM stream GROUP BY window(ts, '1 hour')")


def test_a_zone_other_than_utc_gives_the_same_windows_and_refuses_instants_as_text(spark: Any) -> None:
    table = spark.sql("SELECT timestamp_seconds(id * 1000) AS ts, id AS v FROM range(20)")
    counts = "SELECT window.start AS start, count(*) AS n FROM stream GROUP BY window(ts, '1 hour')"
    utc = {(r.start, r.n) for r in weave(table, counts).answers()["q1"].collect()}
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        assert {(r.start, r.n) for r in weave(table, counts).answers()["q1"].collect()} == utc
        with pytest.raises(Refused, match="in UTC only"):
            weave(table, counts.replace("window.start", "CAST(window.start AS STRING)"))
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_sources_and_sinks_that_do_not_exist_are_refused_with_the_choices(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(UnknownSink, match="parquet:FOLDER, kafka:HOST:PORT/TOPIC, postgresql://HOST/DATABASE, memory,"):
        make_sink("kafka")
    with pytest.raises(UnknownSource, match="rate:ROWS_A_SECOND"):
        open_source(spark, "folder")
    with pytest.raises(UnknownSource, match="is not a folder"):
        open_source(spark, f"json:{tmp_path / 'none'}")
    table = spark.sql("SELECT timestamp_seconds(id) AS ts, 'a' AS k FROM range(3)")
    with pytest.raises(NotServed, match=r"job\.answers"):
        weave(table, COUNTS).start()
    query = "SELECT count(*) FROM stream GROUP BY window(timestamp, '1 second')"
    endless = weave(open_source(spark, "rate:1"), query, event_time="timestamp")
    with pytest.raises(NotServed, match=r"job\.start"):
        endless.answers()


def test_weft_run_drains_a_folder_into_parquet_and_shows_progress_as_json(spark: Any, tmp_path: Path) -> None:
    write_rows(tmp_path / "rows", files=3, rows=20)
    (tmp_path / "queries.sql").write_text(f"CREATE VIEW counts AS {COUNTS};")
    arguments = ["run", str(tmp_path / "queries.sql"), "--files-a-batch", "1"]
    arguments += ["--source", f"parquet:{tmp_path / 'rows'}"]
    arguments += ["--sink", f"parquet:{tmp_path / 'answers'}", "--checkpoint", str(tmp_path / "state")]
    result = CliRunner().invoke(app, [*arguments, "--drain", "--json", "--watermark", "20 seconds"])
    assert result.exit_code == 0, result.output
    last = json.loads(result.stdout.strip().splitlines()[-1])
    assert last["rows"] == 60
    assert last["answers"] == spark.read.parquet(str(tmp_path / "answers" / "counts")).count()
