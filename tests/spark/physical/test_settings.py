"""Settings of the session that change an answer: each is honoured, or what it concerns is refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql.types import StructType

import weft
from tests.support.compare import assert_same_rows
from weft.spark.physical.settings import SETTINGS, SessionSettings
from weft.sql import Refused

BEGIN = datetime(2024, 3, 1, tzinfo=UTC)
WINDOW = "window(ts, '30 seconds', '10 seconds')"
COLUMNS = "ts timestamp_ltz, k int, s string, d double"
ROWS = [(BEGIN + timedelta(seconds=7 * i), i % 3, "abc"[i % 3], i / 4) for i in range(12)]
NEW_YORK = {"spark.sql.session.timeZone": "America/New_York"}


def query(items: str, *, keys: str = "", where: str = "", having: str = "") -> str:
    parts = ["SELECT window.start AS start,", items, "FROM stream", f"WHERE {where}" if where else ""]
    parts += ["GROUP BY", f"{keys}," if keys else "", WINDOW, f"HAVING {having}" if having else ""]
    return " ".join(part for part in parts if part)


def session_with(spark: Any, settings: Mapping[str, str]) -> Any:
    session = spark.newSession()
    for name, value in settings.items():
        session.conf.set(name, value)
    return session


def stream(session: Any, rows: Any = ROWS, columns: str = COLUMNS) -> Any:
    frame = session.createDataFrame(rows, columns)
    frame.createOrReplaceTempView("stream")
    return frame


def assert_as_in_spark(frame: Any, texts: list[str]) -> None:
    """All queries in one job; each gives the rows of plain Spark."""
    answers = weft.weave(frame, texts, event_time="ts").answers()
    for text, answer in zip(texts, answers.values(), strict=True):
        plain = frame.sparkSession.sql(text)
        assert answer.schema.simpleString() == plain.schema.simpleString()
        assert_same_rows(answer.collect(), plain.collect(), text=text)


REFUSED: dict[str, tuple[str, str, str]] = {
    "spark.sql.session.timeZone": ("America/New_York", query("CAST(max(ts) AS string) AS t"), "CAST(max"),
    "spark.sql.ansi.doubleQuotedIdentifiers": ("true", query('max("k") AS m'), '"k"'),
    "spark.sql.parser.escapedStringLiterals": ("true", query(r"max(s) = 'a\\b' AS m"), r"'a\\b'"),
    "spark.sql.legacy.consecutiveStringLiterals.enabled": ("true", query("max(s) = 'it''s' AS m"), "'it''s'"),
    "spark.sql.variable.substitute": ("true", query("max(s) = '${spark.sql.shuffle.partitions}' AS m"), "variable"),
    "spark.sql.parser.quotedRegexColumnNames": ("true", query("`k`, count(*) AS n", keys="k"), "`k`"),
    "spark.sql.groupByOrdinal": ("false", f"SELECT k, count(*) AS n FROM stream GROUP BY 1, {WINDOW}", "1 in GROUP BY"),
    "spark.sql.functionResolution.sessionOrder": ("first", query("max(k) AS m"), "may hide"),
    "spark.sql.legacy.statisticalAggregate": ("true", query("stddev(d) AS m"), "stddev_samp"),
    "spark.sql.legacy.percentileDiscCalculation": (
        "true", query("percentile_disc(0.5) WITHIN GROUP (ORDER BY d) AS m"), "percentile_disc",
    ),
    "spark.sql.timestampType": ("TIMESTAMP_NTZ", query("max(k) AS m"), "with a time zone"),
    "spark.sql.legacy.interval.enabled": ("true", query("max(ts) - min(ts) AS m"), "calendar intervals"),
    "spark.sql.preserveCharVarcharTypeInfo": ("true", query("max(CAST(s AS CHAR(5))) AS m"), "CHAR"),
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": (
        "true", query("max(k) AS m", having="window.start > '2024-03-01 00:00:30'"), "compares texts",
    ),
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": (
        "true", query("max(CAST(k AS decimal(38, 18))) > max(CAST(k AS decimal(30, 2))) AS m"), "rounds max",
    ),
    "spark.sql.legacy.literal.pickMinimumPrecision": ("false", query("sum(CAST(k AS decimal(9, 1))) > 3 AS m"), "> 3"),
    "spark.sql.legacy.allowNegativeScaleOfDecimal": ("true", query("max(k * 1E3BD) AS m"), "decimal"),
}  # fmt: skip
"""The value, a query that it concerns, and what the message names."""

ELSEWHERE = {"spark.sql.caseSensitive", "spark.sql.legacy.sessionInitWithConfigDefaults"}
"""These have tests of their own."""


def test_every_setting_of_the_table_has_a_test() -> None:
    assert REFUSED.keys() | ELSEWHERE == {setting.name for setting in SETTINGS}


@pytest.mark.parametrize("name", REFUSED)
def test_a_query_that_a_setting_concerns_is_refused_by_name(spark: Any, name: str) -> None:
    value, text, fragment = REFUSED[name]
    frame = stream(session_with(spark, {name: value}))
    with pytest.raises(Refused) as refused:
        weft.weave(frame, text, event_time="ts")
    assert name in refused.value.reason
    assert fragment in refused.value.reason
    assert refused.value.way_out == next(setting.way_out for setting in SETTINGS if setting.name == name)


def test_a_session_that_forgets_its_settings_is_refused() -> None:
    (acq,) = weft.parse(query("max(k) AS m"))
    settings = SessionSettings({"spark.sql.legacy.sessionInitWithConfigDefaults": "true"})
    with pytest.raises(Refused, match="without the settings of its session"):
        settings.refuse_text(acq, StructType())


def test_the_ways_out_give_the_answers_of_spark(spark: Any) -> None:
    settings = {name: value for name, (value, _, _) in REFUSED.items()}
    for not_with_others in (
        "spark.sql.timestampType", "spark.sql.functionResolution.sessionOrder", "spark.sql.variable.substitute",
        "spark.sql.parser.quotedRegexColumnNames", "spark.sql.parser.escapedStringLiterals",
    ):  # fmt: skip
        del settings[not_with_others]
    frame = stream(session_with(spark, {**settings, "spark.sql.variable.substitute": "false"}))
    assert_as_in_spark(
        frame,
        [
            query("`k`, max(s) = 'x' AS m", keys="`k`"),  # double quotes, positions
            query(r"max(s) = 'it\'s' AS m, '${x}' AS v, '' AS e"),  # doubled quotes, variables
            query(r"max(CASE WHEN s = 'a\\b' THEN 1 ELSE 0 END) AS m"),  # escapes, in an argument
            query("var_pop(d) AS v, percentile_cont(0.5) WITHIN GROUP (ORDER BY d) AS p"),
            query("max(k) AS m", having="window.start > TIMESTAMP '2024-02-29 19:00:30'"),
            query("max(CAST(k AS decimal(38, 18))) > min(CAST(k AS decimal(38, 18))) AS m"),
            query("max(CAST(k * 1E3BD AS decimal(20, 0))) AS m, max(CAST(s AS string)) AS c"),
        ],
    )


def test_backslashes_are_served_where_spark_reads_them(spark: Any) -> None:
    frame = stream(session_with(spark, {"spark.sql.parser.escapedStringLiterals": "true"}))
    assert_as_in_spark(frame, [query(r"count(*) AS n", where=r"s RLIKE '\w'")])


def test_what_spark_types_is_honoured(spark: Any) -> None:
    """Settings that change types and names only, as Spark's analyser gives them, or how values travel."""
    settings = {
        "spark.sql.decimalOperations.allowPrecisionLoss": "false",
        "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "true",
        "spark.sql.stableDerivedColumnAlias.enabled": "true",
        "spark.sql.ansi.enforceReservedKeywords": "true",
        "spark.sql.execution.arrow.useLargeVarTypes": "true",
        "spark.sql.parquet.binaryAsString": "true",
        "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
    }
    wide = "CAST(d + 0.001 AS decimal(38, 18))"
    assert_as_in_spark(
        stream(session_with(spark, {**settings, **NEW_YORK})),
        [
            query(f"sum({wide}) / avg(CAST(k + 1 AS decimal(30, 10))) AS a, sum({wide}) * 1.5 AS b, avg({wide}) AS c"),
            query("sum(k) * 1E-2 AS a, percentile(k, 5E-1) AS p, sum(k)  +  1"),
            query("max(CAST(s AS BINARY)) AS b, max(TIMESTAMP_NTZ '2024-03-10 02:30:00') AS t", keys="s"),
        ],
    )


def test_timestamps_without_an_offset_are_read_in_the_zone_of_the_session(spark: Any) -> None:
    gap, twice = "TIMESTAMP '2024-03-10 02:30:00'", "TIMESTAMP '2024-11-03 01:30:00'"
    assert_as_in_spark(
        stream(session_with(spark, NEW_YORK)),
        [
            query("count(*) AS n", having="window.start > '2024-02-29 19:00:30'"),
            query("count(*) AS n", having="window.start > TIMESTAMP '2024-02-29 19:00:30'"),
            query("count(*) AS n", having="window.start NOT IN ('2024-02-29T19:00:30', '2024-03-01 00:00:40Z')"),
            query("max(ts) >= DATE '2024-02-29' AS a, max(ts) < '2024-03-01' AS b"),
            query(f"count(*) AS n, {gap} AS gap, {twice} AS twice, {gap.replace(' ', '_NTZ ', 1)} AS ntz"),
            query("window.start + INTERVAL 90 MINUTES AS later, count(*) AS n"),
        ],
    )


def test_with_a_fixed_offset_days_and_differences_are_exact(spark: Any) -> None:
    later = "max(ts) + INTERVAL 1 DAY AS later, max(ts) - min(ts) AS span"
    frame = stream(session_with(spark, {"spark.sql.session.timeZone": "+02:00"}))
    assert_as_in_spark(frame, [query(later, having="window.start > '2024-03-01 02:00:30'")])


@pytest.mark.parametrize("item", ["max(ts) - min(ts)", "max(ts) + INTERVAL 1 DAY", "CAST(max(ts) AS date)"])
def test_local_time_is_not_computed_in_another_zone(spark: Any, item: str) -> None:
    frame = stream(session_with(spark, NEW_YORK))
    with pytest.raises(Refused, match="America/New_York"):
        weft.weave(frame, query(f"{item} AS t"), event_time="ts")


def test_a_zone_that_only_java_knows_is_refused_where_it_matters(spark: Any) -> None:
    frame = stream(session_with(spark, {"spark.sql.session.timeZone": "PST"}))
    weft.weave(frame, query("count(*) AS n"), event_time="ts")
    with pytest.raises(Refused, match="PST"):
        weft.weave(frame, query("count(*) AS n", having="window.start > '2024-03-01'"), event_time="ts")


def test_an_event_time_without_a_zone_may_be_one_that_the_session_zone_skips(spark: Any) -> None:
    session = session_with(spark, {**NEW_YORK, "spark.sql.timestampType": "TIMESTAMP_NTZ"})
    rows = session.sql(
        "SELECT ts, ts AS t, 1 AS k FROM VALUES (TIMESTAMP_NTZ '2024-03-10 02:30:00.123456'), "
        "(TIMESTAMP_NTZ '2024-11-03 01:30:00'), (TIMESTAMP_NTZ '1950-03-10 02:30:00') AS v(ts)"
    )
    rows.createOrReplaceTempView("stream")
    assert_as_in_spark(
        rows,
        [
            query("max(t) AS m, TIMESTAMP '2024-03-10 02:30:00' AS lit", having="window.start > '2024-03-10 02:29:50'"),
            query("t, sum(k) AS n", keys="t"),
        ],
    )


def test_names_in_any_case_are_served_in_a_case_sensitive_session(spark: Any) -> None:
    session = session_with(spark, {"spark.sql.caseSensitive": "true"})
    rows = [(BEGIN + timedelta(seconds=9 * i), i % 2, (i, "x")) for i in range(8)]
    frame = stream(session, rows, "ts timestamp, Key int, Pair struct<Left:int,right:string>")
    assert_as_in_spark(
        frame,
        [
            query("Key, sum(Pair.Left) AS n, max(struct(Key, Pair)) AS m", keys="Key", where="Key >= 0"),
            query("Key AS K, max(Pair) AS N, count(*) AS n_", keys="Key", having="max(Pair.Left) > 2"),
        ],
    )
    assert session.conf.get("spark.sql.caseSensitive") == "true"
    with pytest.raises(Refused, match="`key` cannot be resolved"):
        weft.weave(frame, query("sum(key) AS n"), event_time="ts")


@pytest.mark.parametrize(("columns", "named"), [
    ("ts timestamp, a int, A int", "a and A"), ("ts timestamp, k int, p array<struct<b:int,B:int>>", "b and B"),
])  # fmt: skip
def test_names_that_differ_in_case_only_are_refused_if_case_matters(spark: Any, columns: str, named: str) -> None:
    frame = stream(session_with(spark, {"spark.sql.caseSensitive": "true"}), [], columns)
    with pytest.raises(Refused) as refused:
        weft.weave(frame, query("count(*) AS n"), event_time="ts")
    assert f"the columns {named}" in refused.value.reason
    assert "Rename" in refused.value.way_out


def test_a_case_sensitive_stream_is_answered_as_a_table_is(spark: Any, tmp_path: Any) -> None:
    session = session_with(spark, {"spark.sql.caseSensitive": "true"})
    rows = [(BEGIN + timedelta(seconds=9 * i), i % 2, (i,)) for i in range(8)]
    table = stream(session, rows, "ts timestamp, Key int, Pair struct<Left:int>").coalesce(1)
    table.write.parquet(str(tmp_path / "rows"))
    text = query("Key, sum(Pair.Left) AS N", keys="Key", where="Key >= 0")
    job = weft.weave(session.readStream.schema(table.schema).parquet(str(tmp_path / "rows")), text, event_time="ts")
    run = job.start(sink=f"parquet:{tmp_path / 'answers'}", checkpoint=tmp_path / "state", available_now=True)
    run.add("CREATE VIEW more AS " + query("Key, max(struct(Key, Pair)) AS M", keys="Key"))
    run.wait()
    with pytest.raises(Refused, match="`key` cannot be resolved"):
        run.add("CREATE VIEW other AS " + query("max(key) AS M"))
    answers = session.read.parquet(str(tmp_path / "answers" / "q1"))
    assert answers.count()
    closed = "(SELECT max(ts) FROM stream)"
    assert_same_rows(
        answers.collect(),
        session.sql(f"SELECT * FROM ({text}) WHERE start + INTERVAL 30 SECONDS <= {closed}").collect(),
    )
