"""What Spark takes and weft cannot keep is refused when the query is bound, with a way out that works."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import weft
from tests.support.compare import assert_same_rows

BY = "FROM stream GROUP BY window(ts, '4 seconds', '2 seconds')"


@pytest.fixture(scope="module")
def rows(spark: Any) -> pa.Table:
    table = spark.sql("SELECT timestamp_seconds(id) AS ts, cast(id % 3 AS int) AS k, id FROM range(12)")
    return table.toArrow()  # type: ignore[no-any-return]


def spark_gives(spark: Any, rows: pa.Table, text: str) -> pa.Table:
    session = spark.newSession()
    session.createDataFrame(rows).createOrReplaceTempView("stream")
    return session.sql(text).toArrow()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("refused", "reason", "rewritten"),
    [
        (f"SELECT window.start AS x, count(*) AS X {BY}", "two columns of the answer are called",
         f"SELECT window.start AS x, count(*) AS n {BY}"),
        (f"SELECT window.start AS w, NULL AS x, count(*) AS n {BY}", r"NULL has no type here[\s\S]*CAST\(NULL AS INT",
         f"SELECT window.start AS w, CAST(NULL AS INT) AS x, count(*) AS n {BY}"),
        (f"SELECT window.start AS w, array(max(k), NULL) AS x {BY}", "weft does not compute array", None),
        (f"SELECT window.start AS w, count(*) AS n {BY} HAVING NULL", r"HAVING: NULL[\s\S]*CAST\(NULL AS BOOLEAN\)",
         f"SELECT window.start AS w, count(*) AS n {BY} HAVING CAST(NULL AS BOOLEAN)"),
        (f"SELECT window.start AS w, max(NULL) AS x {BY}", "an argument of max is NULL and has no type",
         f"SELECT window.start AS w, max(CAST(NULL AS INT)) AS x {BY}"),
        (f"SELECT window.start AS w, count(DISTINCT NULL) AS x {BY}", "an argument of count_distinct is NULL",
         f"SELECT window.start AS w, count(DISTINCT CAST(NULL AS INT)) AS x {BY}"),
        (f"SELECT window.start AS w, max(make_ym_interval(k, 1)) AS x {BY}", "values of type interval year to month",
         f"SELECT window.start AS w, max(CAST(make_ym_interval(k, 1) AS STRING)) AS x {BY}"),
        (f"SELECT window.start AS w, first(make_interval(k, 1)) AS x {BY}", "values of type interval",
         f"SELECT window.start AS w, first(CAST(make_interval(k, 1) AS STRING)) AS x {BY}"),
        (f"SELECT window.start AS w, first(parse_json('1')) AS x {BY}", "values of type variant",
         f"SELECT window.start AS w, first(CAST(parse_json('1') AS INT)) AS x {BY}"),
        ("SELECT map('a', k) AS g, count(*) AS x FROM stream GROUP BY map('a', k), window(ts, '4 seconds')",
         r"does not group by maps[\s\S]*m\['key'\]",
         "SELECT map('a', k)['a'] AS g, count(*) AS x FROM stream GROUP BY map('a', k)['a'], window(ts, '4 seconds')"),
        ("SELECT make_ym_interval(k, 1) AS g, count(*) AS x FROM stream "
         "GROUP BY make_ym_interval(k, 1), window(ts, '4 seconds')", "values of type interval year to month", None),
    ],
)  # fmt: skip
def test_a_type_that_cannot_be_kept_is_refused_with_a_way_out_that_works(
    spark: Any, rows: pa.Table, refused: str, reason: str, rewritten: str | None
) -> None:
    table = spark.createDataFrame(rows)
    with pytest.raises(weft.WeftError, match=reason):
        weft.weave(table, refused)
    if rewritten is not None:
        answers = weft.weave(table, rewritten).answers()["q1"].toArrow()
        assert_same_rows(answers, spark_gives(spark, rows, rewritten), text=rewritten)


@pytest.mark.parametrize("argument", ["NULL", "make_ym_interval(k, 1)", "make_interval(k, 1)", "parse_json('1')"])
def test_values_that_are_only_counted_need_no_type_of_arrow(spark: Any, rows: pa.Table, argument: str) -> None:
    text = f"SELECT window.start AS w, count({argument}) AS n {BY}"
    answers = weft.weave(spark.createDataFrame(rows), text).answers()["q1"].toArrow()
    assert_same_rows(answers, spark_gives(spark, rows, text), text=text)


def test_a_column_with_a_name_of_wefts_own_is_refused(spark: Any) -> None:
    table = spark.sql("SELECT timestamp_seconds(id) AS ts, id AS _weft_time FROM range(3)")
    with pytest.raises(weft.WeftError, match=r"a column _weft_time.*withColumnRenamed"):
        weft.weave(table, f"SELECT sum(_weft_time) AS x {BY}")


@pytest.mark.parametrize("select", ["max(struct(k, id))", "max_by(id, struct(k, id))", "min(array(k, id))"])
def test_nested_values_are_ordered_as_spark_orders_them(spark: Any, rows: pa.Table, select: str) -> None:
    text = f"SELECT window.start AS w, {select} AS x {BY}"
    answers = weft.weave(spark.createDataFrame(rows), text).answers()["q1"].toArrow()
    assert_same_rows(answers, spark_gives(spark, rows, text), text=text)


def test_a_time_without_a_zone_counts_in_no_zone(spark: Any) -> None:
    """02:30 on the tenth of March 2024 is a time of its own, though New York's clocks had no such hour."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    hours = "explode(array('2024-03-10 01:30:00.5', '2024-03-10 02:30:00.5', '2024-03-10 03:30:00.5', '1969-07-20'))"
    table = session.sql(f"SELECT CAST(hour AS TIMESTAMP_NTZ) AS ts FROM (SELECT {hours} AS hour)")
    table.createOrReplaceTempView("stream")
    text = "SELECT window.start AS w, window.end AS e, count(*) AS n FROM stream GROUP BY window(ts, '1 hour')"
    answers = weft.weave(table, text).answers()["q1"].toArrow()
    assert answers.num_rows == 4
    assert_same_rows(answers, session.sql(text).toArrow(), text=text)


@pytest.mark.parametrize("phantoms", ["never", "always"])
def test_fields_whose_names_need_backquotes_are_keys_and_arguments(spark: Any, rows: pa.Table, phantoms: str) -> None:
    table = spark.createDataFrame(rows).selectExpr("ts", "k", "named_struct('a b', k, 'c-d', id) AS st")
    texts = [
        "SELECT st, window.start AS w, count(*) AS n FROM stream GROUP BY st, window(ts, '4 seconds')",
        "SELECT st.`a b` AS g, window.start AS w, max(st) AS x FROM stream GROUP BY st.`a b`, window(ts, '4 seconds')",
        "SELECT k, window.start AS w, max(st.`c-d`) AS x FROM stream GROUP BY k, window(ts, '4 seconds')",
    ]
    session = spark.newSession()
    session.createDataFrame(table.toArrow()).createOrReplaceTempView("stream")
    for frame, text in zip(weft.weave(table, texts, phantoms=phantoms).answers().values(), texts, strict=True):
        assert_same_rows(frame.toArrow(), session.sql(text).toArrow(), text=text)
