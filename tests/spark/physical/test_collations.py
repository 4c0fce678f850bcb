"""Texts with a collation: Spark compares them in filters; where weft would compare them, they are refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import weft
from tests.spark.physical.test_settings import assert_as_in_spark, query
from weft.sql import Refused

BEGIN = datetime(2024, 3, 1, tzinfo=UTC)
BINARY = "c COLLATE UTF8_BINARY"


@pytest.fixture
def collated(spark: Any) -> Any:
    """Equal texts of different case, in slices of one window and in different windows."""
    rows = [(BEGIN + timedelta(seconds=6 * i), "aAbBa"[i % 5], i) for i in range(10)]
    session = spark.newSession()
    frame = session.createDataFrame(rows, "ts timestamp, b string, n int").selectExpr(
        "ts", "n", "b COLLATE UTF8_LCASE AS c", "array(struct(b COLLATE UNICODE_CI AS d)) AS nested"
    )
    frame.createOrReplaceTempView("stream")
    return frame


@pytest.mark.parametrize(
    ("text", "collation"),
    [
        (query("c, count(*) AS m", keys="c"), "UTF8_LCASE"),
        (query("count(*) AS m", keys="lower(c)"), "UTF8_LCASE"),
        (query("count(*) AS m", keys="nested"), "UNICODE_CI"),
        (query("max(c) AS m"), "UTF8_LCASE"),
        (query("max(nested[0]) AS m"), "UNICODE_CI"),
        (query("max_by(n, c) AS m"), "UTF8_LCASE"),
        (query("first(c) AS m"), "UTF8_LCASE"),
        (query("count(DISTINCT c) AS m"), "UTF8_LCASE"),
        (query("approx_count_distinct(c) AS m"), "UTF8_LCASE"),
        (query("mode(c) AS m"), "UTF8_LCASE"),
        (query("top_k_sum(c, n) AS m"), "UTF8_LCASE"),
        (query("count(*) AS m, 'x' COLLATE UTF8_LCASE AS x"), "UTF8_LCASE"),
        (query("count(*) AS m", having="max(CAST(n AS string)) = 'x' COLLATE UTF8_LCASE"), "UTF8_LCASE"),
    ],
)
def test_where_weft_would_compare_collated_texts_they_are_refused(collated: Any, text: str, collation: str) -> None:
    with pytest.raises(Refused, match=f"has the collation {collation}") as refused:
        weft.weave(collated, text, event_time="ts")
    assert "COLLATE UTF8_BINARY" in refused.value.way_out


def test_filters_counts_and_the_way_out_give_the_answers_of_spark(collated: Any) -> None:
    assert_as_in_spark(
        collated,
        [
            query("count(c) AS a, count(c, n) AS b, count_if(c = 'A') AS d", where="c < 'b'"),
            query("sum(n) FILTER (WHERE c = 'a') AS a, max(length(c)) AS b", keys="length(c)"),
            query(f"{BINARY} AS k, max({BINARY}) AS a, count(DISTINCT lower({BINARY})) AS b", keys=BINARY),
            query(
                f"lower({BINARY}) AS k, mode(lower({BINARY})) AS a, max_by(n, {BINARY}) AS b", keys=f"lower({BINARY})"
            ),
        ],
    )
