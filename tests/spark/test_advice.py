"""What a refusal advises is run: where plain Spark answers the refused text, the advised text gives the same rows.

The table has most of the advice that rewrites a query: the refused text, words of the advice, and the advised text.
Advice to run a query elsewhere, or to use another aggregate if less will do, promises no equal rows and is not here.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import weft
from tests.support.compare import assert_same_rows

T = datetime(2024, 3, 1, tzinfo=UTC)
BY = "GROUP BY window(ts, '30 seconds', '10 seconds')"
FROM = f"FROM stream {BY}"


class Advice(NamedTuple):
    refused: str
    advice: str
    advised: str
    spark_refuses: bool = False
    """Whether Spark does not answer the refused text either: then only the advised text is compared."""


TABLE = (
    Advice(
        f"SELECT window, mode() WITHIN GROUP (ORDER BY k DESC) AS m {FROM}",
        "Write -mode() WITHIN GROUP (ORDER BY -x)",
        f"SELECT window, -mode() WITHIN GROUP (ORDER BY -k) AS m {FROM}",
    ),
    Advice(
        f"SELECT window, count(DISTINCT *) AS n {FROM}",
        "Name the columns, as in count(DISTINCT a, b)",
        f"SELECT window, count(DISTINCT ts, k, s, d, b) AS n {FROM}",
    ),
    Advice(
        f"SELECT window, count(stream.*) AS n {FROM}",
        "Name the columns, as in count(a, b)",
        f"SELECT window, count(ts, k, s, d, b) AS n {FROM}",
        spark_refuses=True,
    ),
    Advice(
        f"SELECT window, percentile(d, 1 - 0.7) AS m {FROM}",
        "with the number itself",
        f"SELECT window, percentile(d, 0.3) AS m {FROM}",
    ),
    Advice(
        f"SELECT window, percentile_cont(0.5) WITHIN GROUP (ORDER BY k, b) AS m {FROM}",
        "Write percentile_cont(0.5) WITHIN GROUP (ORDER BY x).",
        f"SELECT window, percentile_cont(0.5) WITHIN GROUP (ORDER BY k) AS m {FROM}",
        spark_refuses=True,
    ),
    Advice(
        f"SELECT window, max(k) IGNORE NULLS AS m {FROM}",
        "Leave IGNORE NULLS out",
        f"SELECT window, max(k) AS m {FROM}",
        spark_refuses=True,
    ),
    Advice(
        "SELECT DISTINCT window, k, count(*) AS n FROM stream GROUP BY k, window(ts, '30 seconds', '10 seconds')",
        "Leave DISTINCT out",
        "SELECT window, k, count(*) AS n FROM stream GROUP BY k, window(ts, '30 seconds', '10 seconds')",
    ),
    Advice(
        "SELECT window(ts, '30 seconds') AS w, k, count(*) AS n FROM stream GROUP BY ALL",
        "Write the keys and the window out",
        "SELECT window(ts, '30 seconds') AS w, k, count(*) AS n FROM stream GROUP BY k, window(ts, '30 seconds')",
    ),
    Advice(
        f"SELECT window, count(*) AS n FROM (SELECT ts, k FROM stream WHERE k > 1) {BY}",
        "Put its filter and expressions into the query itself",
        f"SELECT window, count(*) AS n FROM stream WHERE k > 1 {BY}",
    ),
    Advice(
        f"SELECT window, k, count(*) AS n {FROM}",
        "Add k to GROUP BY, or aggregate it, as in max(k)",
        f"SELECT window, max(k) AS k, count(*) AS n {FROM}",
        spark_refuses=True,
    ),
    Advice(
        f"SELECT window, count(*) AS n FROM stream WHERE count(*) > 12 {BY}",
        "Put the condition in HAVING",
        f"SELECT window, count(*) AS n {FROM} HAVING count(*) > 12",
        spark_refuses=True,
    ),
)


def rows() -> pa.Table:
    count = 60
    return pa.table(
        {
            "ts": pa.array([T + timedelta(seconds=2 * i) for i in range(count)], pa.timestamp("us", "UTC")),
            "k": pa.array([i * 7 % 5 if i % 8 else None for i in range(count)], pa.int32()),
            "s": pa.array([("a", "b|", "|b", None)[i % 4] for i in range(count)]),
            "d": pa.array([float(i % 7) if i % 9 else None for i in range(count)]),
            "b": pa.array([2**62 + i for i in range(count)], pa.int64()),
        }
    )


@pytest.fixture(scope="module")
def stream(spark: Any) -> Any:
    session = spark.newSession()
    frame = session.createDataFrame(rows()).coalesce(1)
    frame.createOrReplaceTempView("stream")
    return frame


@pytest.mark.parametrize("case", TABLE, ids=[case.advice for case in TABLE])
def test_advice_gives_what_spark_gives_for_the_refused_text(stream: Any, case: Advice) -> None:
    with pytest.raises(weft.WeftError) as refused:
        weft.weave(stream, [case.refused], event_time="ts")
    assert case.advice in str(refused.value)
    session = stream.sparkSession
    if case.spark_refuses:
        with pytest.raises(Exception, match=r"\[[A-Z_]+"):
            session.sql(case.refused).collect()
    expected = session.sql(case.advised if case.spark_refuses else case.refused).toArrow()
    answer = weft.weave(stream, [case.advised], event_time="ts").answers()["q1"].toArrow()
    assert_same_rows(answer, expected, text=case.advised)


FAILING = (
    ("sum(b)", "sum(CAST(x AS DECIMAL(38,0)))", "sum(CAST(b AS DECIMAL(38,0)))"),
    ("max(d) / (min(k) - min(k))", "nullif(divisor, 0)", "max(d) / nullif(min(k) - min(k), 0)"),
    ("max(b) * 4", "Cast the operands to a wider type", "CAST(max(b) AS DECIMAL(38,0)) * 4"),
    ("cast(max(s) AS int)", "try_cast", "max(try_cast(s AS int))"),
)


@pytest.mark.parametrize(("item", "advice", "advised"), FAILING)
def test_advice_for_a_query_that_fails_on_a_row_gives_an_answer_as_in_spark(
    stream: Any, item: str, advice: str, advised: str
) -> None:
    session = stream.sparkSession
    failing, text = (f"SELECT window, {what} AS x {FROM}" for what in (item, advised))
    with pytest.raises(Exception, match=r"\[[A-Z_]+"):
        session.sql(failing).collect()
    with pytest.raises(weft.WeftError) as failed:
        weft.weave(stream, [failing], event_time="ts").answers()["q1"].collect()
    # What already fails inside one slice has Spark's own message.
    assert advice in str(failed.value) or "[ARITHMETIC_OVERFLOW]" in str(failed.value)
    answer = weft.weave(stream, [text], event_time="ts").answers()["q1"].toArrow()
    assert_same_rows(answer, session.sql(text).toArrow(), text=text)
