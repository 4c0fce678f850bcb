"""Numbers at the ends of their ranges, with ANSI mode and without: weft's answers are Spark's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import weft
from tests.support.compare import assert_same_rows
from weft.kernels import OPERATORS, TECHNIQUES

T = datetime(2024, 3, 1, tzinfo=UTC)
SLIDING = "window(ts, '30 seconds', '10 seconds')"
TUMBLING = "window(ts, '20 seconds')"
GREATEST = 2**63 - 1
NINES = Decimal(10**38 - 1)
INTEGERS = (GREATEST, -GREATEST - 1, 1, GREATEST, 5)
DECIMALS = (NINES, Decimal(5), None, Decimal(10**37), Decimal(10**38 - 4), None, None, None, Decimal(1))


def rows() -> pa.Table:
    seconds = [i * 2 for i in range(45)] + [200, 213, 300]
    count = len(seconds)
    return pa.table(
        {
            "ts": pa.array([T + timedelta(seconds=s) for s in seconds], pa.timestamp("us", "UTC")),
            "k": pa.array([i % 3 for i in range(count)], pa.int32()),
            "b": pa.array([INTEGERS[i % 5] for i in range(count)], pa.int64()),
            "d": pa.array([DECIMALS[i % 9] for i in range(count)], pa.decimal128(38, 0)),
            "n": pa.array([Decimal(i % 7) / 4 for i in range(count)], pa.decimal128(12, 2)),
            "s": pa.array([("12", "abc", " 7 ")[i % 3] for i in range(count)]),
            "f": pa.array([(-1.0) ** i * 1e300 if i % 4 == 0 else float(i) for i in range(count)]),
        }
    )


def query(items: str, window: str = SLIDING, keys: str = "") -> str:
    return f"SELECT {items}, window.start AS since FROM stream GROUP BY {keys}{window}"


def assert_spark_agrees(session: Any, texts: Sequence[str], table: pa.Table | None = None, **options: Any) -> None:
    frame = session.createDataFrame(rows() if table is None else table).coalesce(1)
    frame.createOrReplaceTempView("stream")
    answers = weft.weave(frame, list(texts), event_time="ts", **options).answers()
    for text, answer in zip(texts, answers.values(), strict=True):
        key = [i for i, name in enumerate(answer.columns) if name in ("since", "k")]
        assert_same_rows(answer.toArrow(), session.sql(text).toArrow(), key=key, text=text)


@pytest.fixture(scope="module")
def without_ansi(spark: Any) -> Any:
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "false")
    return session


TECHNIQUES_OF_SUMS = [name for name, how in TECHNIQUES.items() if how.accepts(OPERATORS["int_sum"])]


@pytest.mark.parametrize(
    "technique", ["auto", *(pytest.param(name, marks=pytest.mark.slow) for name in TECHNIQUES_OF_SUMS)]
)
def test_without_ansi_sums_of_integers_wrap_around_in_every_technique(without_ansi: Any, technique: str) -> None:
    texts = [
        query("sum(b) AS total, sum(-b) AS negative, sum(b) + 1 AS more, sum(b) * 3 AS triple"),
        query("k, sum(b) AS total, sum(b) FILTER (WHERE k < 2) AS some", keys="k, "),
        query("sum(b) AS total", TUMBLING),
    ]
    assert_spark_agrees(without_ansi, texts, technique=technique)


def test_without_ansi_sums_and_means_of_decimals_are_null_where_they_overflow(without_ansi: Any) -> None:
    texts = [
        query("sum(d) AS total, avg(d) AS mean, sum(n) AS small, avg(n) AS small_mean"),
        query("k, sum(d) AS total, avg(d) FILTER (WHERE k < 2) AS mean", keys="k, "),
        query("sum(d) AS total, avg(d) AS mean", TUMBLING),
        query("sum(d) AS total, count(d) AS n", "window(ts, '60 seconds', '7 seconds')"),
        query("sum(d) AS total", "window(ts, '2 seconds')"),
    ]
    assert_spark_agrees(without_ansi, texts)


def test_without_ansi_what_cannot_be_computed_after_aggregation_is_null_or_wraps(without_ansi: Any) -> None:
    texts = [
        query("max(b) / (count(*) - count(*)) AS a, max(b) % 0 AS b, max(b) DIV 0 AS c, max(n) / 0 AS d"),
        query("max(b) + 1 AS a, max(b) * 2 AS b, min(b) - 1 AS c, -min(b) AS d, abs(min(b)) AS e"),
        query("cast(max(b) AS int) AS a, cast(max(b) AS tinyint) AS b, cast(max(f) AS int) AS c"),
        query("cast(max(s) AS int) AS a, cast(min(s) AS double) AS b, cast(max(s) AS boolean) AS c"),
        query(
            "cast(max(d) AS decimal(20, 5)) AS a, max(d) + 1 AS b, max(d) * 10 AS c, cast(max(f) AS decimal(9, 2)) AS e"
        ),
        query("avg(s) AS mean, sum(s) AS total, stddev(s) AS spread, round(max(b), -3) AS thousands"),
    ]
    assert_spark_agrees(without_ansi, texts)


def test_in_ansi_mode_a_sum_that_overflows_across_slices_stops_the_query(spark: Any) -> None:
    for column, advice in (("b", "DECIMAL"), ("d", "DOUBLE")):
        session = spark.newSession()
        frame = session.createDataFrame(rows()).coalesce(1)
        frame.createOrReplaceTempView("stream")
        text = query(f"sum({column}) AS total")
        with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
            session.sql(text).collect()
        with pytest.raises(weft.WeftError, match=f"{advice}|OVERFLOW"):
            weft.weave(frame, [text], event_time="ts").answers()["q1"].collect()


def test_the_advice_for_sums_that_overflow_gives_sparks_answer(spark: Any) -> None:
    texts = [query("sum(CAST(b AS DECIMAL(38,0))) AS total"), query("sum(CAST(d AS DOUBLE)) AS total")]
    assert_spark_agrees(spark.newSession(), texts)


def test_advice_never_says_to_turn_off_what_is_off(without_ansi: Any) -> None:
    table = pa.table({"ts": pa.array([T], pa.timestamp("us", "UTC")), "d": pa.array([NINES], pa.decimal128(38, 0))})
    frame = without_ansi.createDataFrame(table)
    frame.createOrReplaceTempView("stream")
    text = query("-max(d) AS x")
    with pytest.raises(Exception, match="NUMERIC_VALUE_OUT_OF_RANGE"):
        without_ansi.sql(text).collect()
    with pytest.raises(weft.WeftError, match="overflow") as refused:
        weft.weave(frame, [text], event_time="ts").answers()["q1"].collect()
    assert "ansi" not in str(refused.value)


def test_doubles_become_decimals_by_the_digits_that_java_prints(spark: Any) -> None:
    # Java 17 prints each of these with other digits than the shortest.
    odd = [2e23, 2.0e-3, 2.2250738585072014e-3, 1.1e-5, 8.41e21, 2.2065708004662117e25, 5e-324, 1.0e23, 0.1, 2 / 3]
    values = odd + [-v * 3 for v in odd] + [float("nan"), float("inf")]
    table = pa.table(
        {
            "ts": pa.array([T + timedelta(seconds=20 * i) for i in range(len(values))], pa.timestamp("us", "UTC")),
            "f": pa.array(values),
            "g": pa.array(values, pa.float32()),
        }
    )
    small = "round(max(f), 15) AS a, round(max(f), 20) AS b, round(max(g), 9) AS c"
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "false")
    texts = [
        query(f"cast(max(f) AS decimal({digits})) AS x, cast(max(g) AS decimal({digits})) AS y", TUMBLING)
        for digits in ("38,0", "38,10", "38,24", "38,38")
    ]
    assert_spark_agrees(session, [*texts, query(small, TUMBLING)], table)


CO = ("covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2", "regr_sxx", "regr_sxy", "regr_syy")


@pytest.mark.parametrize("value", ["1e307D * k + 1e308D", "-1e308D - 1e306D * k", "1e300D * k", "1e60D * k"])
def test_moments_of_values_around_1e308_are_infinite_where_sparks_are(spark: Any, value: str) -> None:
    means = [f"{name}({value}, {value}) AS {name}" for name in ("regr_avgx", "regr_avgy")]
    pairs = [f"{name}({value}, {value}) AS {name}" for name in CO if name != "regr_intercept"]
    alone = [
        f"{name}({value}) AS {name}" for name in ("var_pop", "var_samp", "stddev", "stddev_pop", "skewness", "avg")
    ]
    opposite = f"covar_pop({value}, -({value})) AS opposite"
    assert_spark_agrees(spark.newSession(), [query(", ".join([*means, *pairs, *alone, opposite]))])


def test_percentiles_in_descending_order_count_from_the_greatest(spark: Any) -> None:
    def items(share: str, value: str) -> str:
        return (
            f"percentile_disc({share}) WITHIN GROUP (ORDER BY {value} DESC) AS a, "
            f"percentile_cont({share}) WITHIN GROUP (ORDER BY {value} DESC NULLS LAST) AS b, "
            f"percentile_disc({share}) WITHIN GROUP (ORDER BY {value} ASC NULLS FIRST) AS c"
        )

    shares = ("0", "0.3", "0.5", "1", "array(0.1, 0.9)")
    texts = [query(items(share, value)) for share in shares for value in ("k", "f")]
    assert_spark_agrees(spark.newSession(), [*texts, query("k, " + items("0.25", "f"), TUMBLING, "k, ")])


def test_distinct_rows_are_counted_where_no_part_is_null(spark: Any) -> None:
    texts = [
        query("count(DISTINCT k, s) AS a, count(DISTINCT d, k) AS b, count(DISTINCT n, f, ts) AS c"),
        query("k, count(DISTINCT s, cast(s AS binary), d) FILTER (WHERE b > 0) AS a", keys="k, "),
        # Joined without lengths, these two texts would be equal for different rows.
        query("count(DISTINCT concat('a', repeat(':', k)), concat(repeat(':', 2 - k), 'b')) AS a"),
        query("count(DISTINCT if(k = 0, 0D, -0D), if(k = 0, cast('NaN' AS double), -cast('NaN' AS double))) AS a"),
    ]
    assert_spark_agrees(spark.newSession(), texts)


def test_count_if_reads_texts_as_booleans_in_ansi_mode_and_is_refused_as_in_spark_without(
    spark: Any, without_ansi: Any
) -> None:
    assert_spark_agrees(
        spark.newSession(), [query("count_if(cast(k > 1 AS string)) AS n, bool_or(cast(k > 1 AS string)) AS o")]
    )
    frame = without_ansi.createDataFrame(rows())
    with pytest.raises(weft.WeftError, match="DATATYPE_MISMATCH"):
        weft.weave(frame, [query("count_if(s) AS n")], event_time="ts")
