"""Moments: regressions are the nine that Spark has, and values that are all the same have no moments at all."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.compare import assert_same_rows
from weft.spark import weave

pytestmark = pytest.mark.spark

PAIRS = (("y, x", ""), ("z, y", ""), ("z, c", ""), ("c, z", ""), ("s, x", ""), ("y, x", "FILTER (WHERE k = 1)"))
NAMES = ("count", "avgx", "avgy", "sxx", "syy", "sxy", "slope", "intercept", "r2")

ROWS = """
SELECT timestamp_micros(1700000000000000 + id * 40000) AS ts, id % 3 AS k,
  CASE WHEN id % 11 = 0 THEN NULL WHEN id BETWEEN 500 AND 600 THEN 4 ELSE round(sin(id) * 20, 2) + id / 100 END AS y,
  CASE WHEN id % 7 = 0 OR id BETWEEN 800 AND 850 THEN NULL WHEN id BETWEEN 300 AND 450 THEN 7
    ELSE CAST(id * 31 % 23 AS INT) END AS x,
  CASE WHEN id BETWEEN 200 AND 210 THEN double('NaN') ELSE id % 5 END AS z,
  CAST(id * 31 % 23 * 2 + id % 4 AS STRING) AS s, 1.1D AS c
FROM range(1200)
"""
"""Times without a pair, with one, with one x or one y for all; y and x of different types; NaN that comes and goes."""


@pytest.mark.slow
@pytest.mark.parametrize("phantoms", ["always", "never"])
def test_regressions_are_those_of_plain_spark(spark: Any, phantoms: str) -> None:
    rows = spark.sql(ROWS).persist()
    rows.createOrReplaceTempView("stream")
    texts = []
    for number, (pair, where) in enumerate(PAIRS):
        calls = ", ".join(f"regr_{name}({pair}) {where} AS {name}" for name in NAMES)
        calls += f", corr({pair}) {where} AS corr"
        length = ("'6 seconds', '2 seconds'", "'40 milliseconds'", "'5 seconds', '500 milliseconds'")[number % 3]
        texts.append(f"SELECT k, window.start AS w, {calls} FROM stream GROUP BY k, window(ts, {length})")
        texts.append(f"SELECT window.start AS w, {calls} FROM stream GROUP BY window(ts, {length})")
    answers = weave(
        rows, [f"CREATE VIEW q{i} AS {text}" for i, text in enumerate(texts)], event_time="ts", phantoms=phantoms
    ).answers()
    for number, text in enumerate(texts):
        key = [0, 1] if text.startswith("SELECT k") else [0]
        plain = spark.sql(text).toArrow()
        assert_same_rows(answers[f"q{number}"].toArrow(), plain, key=key, text=text)
    nulls = [spark.sql(texts[2]).filter(f"{name} IS NULL").count() for name in NAMES]
    assert nulls[0] == 0
    assert all(nulls[1:]), "or windows without a line through them are in no test"


def test_values_that_are_all_the_same_have_no_shape_and_no_line_however_they_are_sliced(spark: Any) -> None:
    # The sum of 0.1 over a slice, divided by how many there are, is 0.1 or a neighbour of it, by their number.
    rows = spark.sql(
        "SELECT timestamp_millis(id * 10) AS ts, 0.1D AS x, id % 7 * 0.3D AS y, if(id < 391, 0.1D, 0.7D) AS z "
        "FROM range(700)"
    ).persist()
    rows.createOrReplaceTempView("stream")
    shapes = "var_pop({0}) AS v{0}, stddev({0}) AS d{0}, skewness({0}) AS s{0}, kurtosis({0}) AS k{0}"
    pairs = "corr({0}) AS c{1}, covar_pop({0}) AS p{1}, regr_slope({0}) AS l{1}, regr_r2({0}) AS r{1}"
    calls = ", ".join([*map(shapes.format, "xz"), *map(pairs.format, ("x, y", "y, x", "y, z"), "123")])
    text = f"SELECT window.start AS w, {calls} FROM stream GROUP BY window(ts, '2 seconds', '300 milliseconds')"
    plain = spark.sql(text).toArrow()
    assert plain.column("sx").null_count == len(plain) > plain.column("sz").null_count > 0
    assert_same_rows(weave(rows, text, event_time="ts").answers()["q1"].toArrow(), plain, key=[0], text=text)
