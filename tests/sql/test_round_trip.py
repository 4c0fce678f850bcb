"""The plain Spark SQL of a query is the query: read again, and analysed by Spark itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.sql import parse

CONDITIONS = ["price > 1", "5 < vol", "sym = 'a'", "m.Key IS NOT NULL", "price / vol > 2", "NOT up", "vol IN (1, 2)"]
KEYS = ["sym", "vol % 10", "date_trunc('day', ts)", "st.A", "xs[0]", "upper(sym)", "`my key`"]
ITEMS = [
    "count(*)", "avg(price) * 2", "sum(vol) / count(vol) AS ratio", "max_by(sym, price)", "first(sym) IGNORE NULLS",
    "sum(price) FILTER (WHERE vol > 1 AND sym = 'a')", "window", "window.start AS since", "stddev(price)",
    "CASE WHEN max(vol) > 1 THEN 'many' ELSE 'few' END AS size", "round(avg(price), 2)",
    "count_if(up)", "-min(vol) % 3", "CAST(sum(vol) AS double)", "coalesce(max(vol), 0) BETWEEN 1 AND 3", "'fixed'",
]  # fmt: skip
HAVINGS = ["count(*) > 1", "max(price) > min(price) OR any(up)", "sum(vol) IS NOT NULL AND NOT count(*) IN (3, 4)"]
WINDOWS = ["'1 hour'", "'1 hour', '10 minutes'", "'90 minutes', '30 minutes', '-5 minutes'", "'1.5 seconds'"]
BRACKETS = [
    "RANGE 1 HOUR",
    "WINDOW 1 HOUR SLIDE 10 MINUTES",
    "RANGE 2 DAYS SLIDE 6 HOURS OFFSET 1 HOUR",
    "RANGE 1 WEEK ON seen",
]


@st.composite
def texts(draw: st.DrawFn) -> str:
    some = lambda values: draw(st.lists(st.sampled_from(values), max_size=3, unique=True))  # noqa: E731
    keys, conditions, havings = some(KEYS), some(CONDITIONS), some(HAVINGS)
    items = [*keys, "max(price) AS top", *some(ITEMS)]
    bracket = draw(st.none() | st.sampled_from(BRACKETS))
    groups = keys if bracket else [*keys, f"window(ts, {draw(st.sampled_from(WINDOWS))})"]
    text = f"SELECT {', '.join(items)} FROM trades"
    text += f" [{bracket}]" if bracket else ""
    text += f" WHERE {draw(st.sampled_from([' AND ', ' OR '])).join(conditions)}" if conditions else ""
    text += f" GROUP BY {', '.join(groups)}" if groups else ""
    return text + (f" HAVING {' AND '.join(f'({h})' for h in havings)}" if havings else "")


@settings(max_examples=100, deadline=None)
@given(texts())
def test_the_spark_sql_of_a_query_reads_as_the_same_query(text: str) -> None:
    (query,) = parse(text)
    assert parse(query.spark_sql) == (replace(query, refresh="exact"),)


@settings(max_examples=50, deadline=None)
@given(st.permutations(["price > 1", "vol < 2", "sym = 'a'", "up IS NOT NULL", "st.A != 3"]))
def test_conjuncts_in_any_order_are_one_filter(conditions: list[str]) -> None:
    (query,) = parse(f"SELECT count(*) FROM trades [RANGE 1 HOUR] WHERE {' AND '.join(conditions)}")
    assert query.where == "sym = 'a' AND up IS NOT NULL AND price > 1 AND st.A != 3 AND vol < 2"


HOURLY = "FROM trades GROUP BY window(ts, '1 hour')"
SERVED = [
    f"SELECT count(*), count(1), count(NULL), count(price, vol) {HOURLY}",
    f"SELECT window, window.start, window.end AS until, sum(price) {HOURLY}",
    "SELECT sym, avg(price) * 2 FROM trades GROUP BY sym, window(ts, '1 hour', '10 minutes', '5 minutes')",
    "SELECT T.Sym, Sum(`Price`) FROM trades AS t WHERE t.VOL > 1 GROUP BY sym, window(T.TS, '1 hour')",
    "SELECT upper(sym) AS s, count(*) FROM trades GROUP BY s, window(ts, '1 hour')",
    "SELECT upper(sym), count(*) FROM trades GROUP BY 1, window(ts, '1 hour')",
    "SELECT window(ts, '60 minutes') AS w, w.start, count(*) FROM trades GROUP BY w",
    "SELECT m.Key, m.key, st.a, xs[0], count(*) FROM trades GROUP BY m.Key, m.key, st.A, xs[0], window(ts, '1 hour')",
    "SELECT max(price) FROM trades [RANGE 1 HOUR SLIDE 10 MINUTES]",
    "SELECT sym, max(price), window.start FROM trades [RANGE 1 HOUR SLIDE AT MOST 2 MINUTES] WHERE up GROUP BY sym",
    "SELECT range(price) FROM trades -- spread\n [WINDOW 1 DAY OFFSET 1 HOUR ON seen] t HAVING range(t.price) > 1",
    "SELECT max(price) AS vol FROM trades GROUP BY vol, window(ts, '1 hour') HAVING vol < 1.7",
    f"SELECT max(price) - min(price) AS spread, spread * 2 AS twice {HOURLY} HAVING spread > 1 AND twice < 9",
    f"SELECT first(vol ignore nulls), first(vol) IGNORE NULLS, any_value(vol), last_value(vol, true) {HOURLY}",
    f"SELECT std(price), stddev_pop(price), variance(price), var_pop(price), skewness(price), kurtosis(price) {HOURLY}",
    f"SELECT corr(price, vol), covar_samp(price, vol), covar_pop(price, vol), max_by(sym, price) {HOURLY}",
    f"SELECT regr_slope(price, vol), regr_intercept(price, vol), regr_count(price, vol), max(DISTINCT price) {HOURLY}",
    f"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY price ASC), mode() WITHIN GROUP (ORDER BY vol), "
    f"percentile_disc(0.9) WITHIN GROUP (ORDER BY price) FILTER (WHERE vol > 1) {HOURLY}",
    f"SELECT every(up), some(up), any(up), bit_and(vol), bit_or(vol), bit_xor(vol), count_if(vol > 1) {HOURLY}",
    f"SELECT sum(price) FILTER (WHERE 1 < vol AND sym LIKE ANY ('a%', \"b%\")) {HOURLY}",
    f"SELECT CASE WHEN max(vol) > 1 THEN 'm' END, if(max(vol) > 1, 1, 2), nvl(max(vol), 0), max(vol)::string {HOURLY}",
    f"SELECT -max(vol), - -max(vol), max(vol) div 2, max(vol) % 2, not every(up), max(vol) <=> 2, log(3) {HOURLY}",
    f"SELECT max((Price, Vol)), max(struct(Price)), max(aggregate(xs, 0, (a, x) -> a + x)) {HOURLY}",
    "SELECT count(*) FROM trades WHERE ts > timestamp'2020-01-01' AND sym rlike r'\\w' AND vol >>> 1 = 0 AND vol !> 3 "
    "GROUP BY window(ts, '1 week')",
    "SELECT date_trunc('day', ts) d, count(*) FROM trades WHERE extract(hour FROM ts) BETWEEN 1 AND 3 GROUP BY d, "
    "window(ts, 10000000L)",
    "SELECT count(*) n FROM trades WHERE sym IS DISTINCT FROM 'it\\'s' AND NOT up OR ts < seen - INTERVAL '1' DAY "
    "GROUP BY window(date_trunc('second', ts), \"INTERVAL '10' MINUTES\") HAVING n > 1 OR window.start IS NULL",
    "SELECT count(*) FROM trades WHERE cast(NULL AS array<array<array<int>>>) IS NULL AND vol >>> 1 > 0 "
    "GROUP BY cast(st AS struct<A:int,b:bigint>), window(ts, '1 hour')",
    f"SELECT floor(avg(price)), ceil(avg(price)), round(avg(price), 1), sqrt(sum(vol)), power(2, count(*)) {HOURLY}",
    "SELECT `my key`, `my key` || 'x' AS k2, count(*) AS `a count` FROM trades "
    "GROUP BY `my key`, `my key` || 'x', window(ts, '1 day')",
]  # fmt: skip


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    spark.sql(
        "SELECT timestamp'2024-01-01 00:00:00' ts, timestamp'2024-01-01 00:00:00' seen, 'a' sym, 1.5D price, 2 vol, "
        "true up, map('Key', 1, 'key', 2) m, named_struct('A', 1, 'b', 2) st, array(1, 2) xs, 'k' `my key`"
    ).createOrReplaceTempView("trades")
    return spark


@pytest.mark.spark
@pytest.mark.parametrize("text", SERVED)
def test_spark_takes_the_query_and_names_its_columns_alike(session: Any, text: str) -> None:
    (query,) = parse(text)
    columns = session.sql(query.spark_sql).columns
    assert len(columns) == len(query.outputs)
    assert [o.name or c for o, c in zip(query.outputs, columns, strict=True)] == columns


@pytest.mark.spark
@pytest.mark.parametrize("text", SERVED)
def test_every_piece_of_a_query_is_spark_sql_by_itself(session: Any, text: str) -> None:
    """Keys, filter, arguments and expressions mean something without the table's alias."""
    (query,) = parse(text)
    rows = session.table("trades")
    arguments = [a for c in query.calls for a in c.arguments]
    conditions = [c.condition for c in query.calls if c.condition]
    rows.selectExpr(query.event_time, *query.keys, *arguments)
    for condition in [*conditions, query.where or "true"]:
        rows.where(condition)
    window = f"window({query.event_time}, {query.window.length}, {query.window.slide}, {query.window.offset})"
    pieces = [e.sql for o in query.outputs for e in o.expression.walk()]
    pieces += [e.sql for e in query.having.walk()] if query.having else []
    session.sql(f"SELECT {', '.join(pieces)} FROM trades GROUP BY {', '.join([*query.keys, window])}")


@pytest.mark.spark
@settings(max_examples=15, deadline=None)
@given(text=texts())
def test_spark_takes_every_query_that_is_served(session: Any, text: str) -> None:
    (query,) = parse(text)
    assert len(session.sql(query.spark_sql).columns) == len(query.outputs)
