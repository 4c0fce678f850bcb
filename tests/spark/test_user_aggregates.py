"""Aggregates that users define run in SQL by name, next to Spark's own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import weft
from tests.support.compare import assert_same_rows, spark_answers
from weft.aggregates.user import InvalidAggregate


class GeometricMean:
    lift = ("sum(ln({0}))", "count({0})")
    identity = (0.0, 0.0)

    @staticmethod
    def combine(older: Any, newer: Any) -> Any:
        return older[0] + newer[0], older[1] + newer[1]

    @staticmethod
    def lower(logarithms: Any, count: Any) -> Any:
        return np.exp(logarithms / count)


class Spread:
    """The greatest minus the least of one column over the sum of another."""

    lift = ("max({0})", "min({0})", "sum({1})")
    identity = (-np.inf, np.inf, 0.0)

    @staticmethod
    def combine(older: Any, newer: Any) -> Any:
        return max(older[0], newer[0]), min(older[1], newer[1]), older[2] + newer[2]

    @staticmethod
    def lower(most: Any, least: Any, total: Any) -> Any:
        return (most - least) / total


@pytest.fixture(autouse=True)
def registered() -> None:
    weft.register("geometric_mean", GeometricMean)
    weft.register("spread_over", Spread, arguments=2)


GROUPING = "FROM stream GROUP BY k, window(ts, '10 seconds', '3 seconds')"


@pytest.mark.spark
def test_users_aggregates_give_what_the_same_formula_gives_in_plain_spark(spark: Any) -> None:
    begin = datetime(2024, 3, 1, tzinfo=UTC)
    rows = 200
    table = pa.table(
        {
            "ts": pa.array([begin + timedelta(seconds=i * 0.4) for i in range(rows)], pa.timestamp("us", "UTC")),
            "k": ["abc"[i % 3] for i in range(rows)],
            "x": [None if i % 7 == 0 else 1.0 + i % 11 for i in range(rows)],
            "y": [1 + i % 5 for i in range(rows)],
        }
    )
    job = weft.weave(
        spark.createDataFrame(table),
        f"SELECT k, window.start AS start, geometric_mean(x) AS mine, avg(x) AS mean, spread_over(x, y) AS spread, "
        f"geometric_mean(CASE WHEN y > 2 THEN x END) * 2 AS some {GROUPING} HAVING geometric_mean(x) > 1",
    )
    (found,) = (frame.toArrow() for frame in job.answers().values())
    expected = weft.parse(
        f"SELECT k, window.start AS start, exp(avg(ln(x))) AS mine, avg(x) AS mean, "
        f"(max(x) - min(x)) / sum(y) AS spread, exp(avg(ln(x)) FILTER (WHERE y > 2)) * 2 AS some {GROUPING} "
        "HAVING exp(avg(ln(x))) > 1"
    )
    oracle = spark_answers(spark, table, expected)[expected[0].name]
    assert found.num_rows > 50
    assert_same_rows(found, oracle, key=(0, 1), text="geometric mean")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"lift": ()}, "must be a tuple of 1 to 6 Spark aggregates"),
        ({"identity": (0.0,)}, "a number for each of the 2 columns"),
        ({"lift": ("sum({1})", "count({0})")}, "say arguments=2"),
        ({"combine": None}, "no static method `combine`"),
        ({"identity": (1.0, 1.0)}, "must give the identity"),
    ],
)
def test_a_definition_that_no_technique_could_use_is_refused(change: dict[str, Any], reason: str) -> None:
    broken = type("Broken", (GeometricMean,), change)
    with pytest.raises(InvalidAggregate, match=reason):
        weft.register("broken", broken)


def test_weft_keeps_its_own_names() -> None:
    for name in ("sum", "rows", "moments_2"):
        with pytest.raises(InvalidAggregate, match="weft has one of that name"):
            weft.register(name, GeometricMean)
