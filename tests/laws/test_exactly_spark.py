"""The law of whole queries: refused at registration, or the rows of `spark.sql`, or both sides fail.

What is drawn and how it is compared: `tests/support/random_queries.py` and `tests/support/exactly_spark.py`. Findings
that are known are in `tests/support/known_findings.py`; `make soak` runs the law for an hour.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.support.exactly_spark_soak import run
from tests.support.known_findings import KNOWN
from tests.support.query_values import OutputColumn, RandomQuery, WindowText, expr
from tests.support.random_rows import random_table
from tests.support.same_answers import Answer, differences

SEED = "weft"

COUNT = Answer((("n", "bigint"), ("x", "double")), ((3, 0.1), (None, float("nan"))))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("queries", [100])
def test_every_query_is_refused_or_answered_as_spark_answers_it(spark: Any, queries: int) -> None:
    lines: list[str] = []
    found = run(spark, SEED, queries, shrink_seconds=30, report=lines.append)
    assert not found, "\n".join(lines)


def test_rows_in_another_order_and_sums_in_another_order_are_the_same() -> None:
    other = Answer(COUNT.columns, ((None, float("nan")), (3, 0.1 + 1e-13)))
    assert differences(other, COUNT, [False, False]) is None


@pytest.mark.parametrize(
    "rows", [((3, 0.1),), ((4, 0.1), (None, float("nan"))), ((3, 0.2), (None, float("nan"))), ((3, 0.1), (None, None))]
)
def test_a_row_less_or_another_value_is_a_difference(rows: tuple[tuple[Any, ...], ...]) -> None:
    found = differences(Answer(COUNT.columns, rows), COUNT, [False, False])
    assert found is not None
    assert found.kind == "rows differ"


def test_another_type_is_a_difference() -> None:
    found = differences(Answer((("n", "int"), ("x", "double")), COUNT.rows), COUNT, [False, False])
    assert found is not None
    assert found.kind == "types differ"


def test_the_same_seed_gives_the_same_rows() -> None:
    assert random_table(Random("7"), True) == random_table(Random("7"), True)


def test_a_query_shrinks_to_parts_of_its_own() -> None:
    inner = expr("int", "k")
    column = OutputColumn(expr("int", "max(", expr("int", "abs(", inner, ")"), ")"), "m")
    query = RandomQuery((column,), WindowText(12, 9, 1), (expr("boolean", "k > 0"),), (inner,))
    texts = {simpler.spark_sql for simpler in query.simpler}
    window = "window(ts, '12 microseconds', '9 microseconds', '1 microseconds')"
    assert f"SELECT max(abs(k)) AS m FROM stream GROUP BY k, {window}" in texts
    assert f"SELECT max(k) AS m FROM stream WHERE k > 0 GROUP BY k, {window}" in texts
    assert f"SELECT max(abs(k)) AS m FROM stream WHERE k > 0 GROUP BY {window}" in texts


def test_known_findings_have_names_of_their_own() -> None:
    assert len({entry.name for entry in KNOWN}) == len(KNOWN)
