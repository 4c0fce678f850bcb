"""WHERE guards, as in plain Spark: what a query computes is computed for rows that pass its WHERE, and for no others.

Queries share passes over the rows, are counted and sampled together, and are rolled up from one another. None of that
may evaluate `1 / k` for a row with k = 0 that its query does not take.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import weft
from tests.support.compare import assert_same_rows

WINDOW = "window(ts, '30 seconds', '10 seconds')"
DIGITS = "s RLIKE '^[0-9]+$'"


def text(select: str, keys: str = "", where: str = "", window: str = WINDOW) -> str:
    by = f"{keys}, {window}" if keys else window
    columns = f"{keys}, {select}" if keys else select
    return f"SELECT window.start AS w, {columns} FROM stream {f'WHERE {where}' if where else ''} GROUP BY {by}"


GUARDED = {
    "argument": text("sum(1 / k) AS x", where="k <> 0"),
    "same_argument_other_filter": text("sum(1 / k) AS x", where="k > 1"),
    "two_arguments": text("sum(1 / k) AS x, max(100 div (k - 1)) AS y", where="k > 1"),
    "cast": text("sum(cast(s AS int)) AS x", where="s = '12'"),
    "key": text("count(*) AS n", "cast(s AS int)", DIGITS),
    "key_and_argument": text("sum(1 / k) AS x", "cast(s AS int)", f"{DIGITS} AND k <> 0"),
    "element": text("count(*) AS n", "element_at(split(place, ' of '), 2)", "place LIKE '% of %'"),
    "filter": text("sum(1 / k) FILTER (WHERE k <> 0) AS x, first(1 / k) FILTER (WHERE k <> 0) AS y"),
    "filter_by": text("max_by(1 / k, id) FILTER (WHERE k <> 0) AS x", where="id > 3"),
    "case": text("sum(CASE WHEN k <> 0 THEN 1 / k END) AS x", where="id <> 5"),
    "conjunction": text("count(*) AS n", where="k <> 0 AND 1 / k > 0.3"),
    "conjunction_above": text("count(*) AS n", where="k <> 0 AND 1 / k > 0.6"),
    "conjunction_of_three": text("sum(1 / k) AS x", where="id > 2 AND k <> 0 AND 1 / k > 0.3"),
    "values": text("median(cast(s AS int)) AS x, count(DISTINCT cast(s AS int)) AS y", where=DIGITS),
    "deviation": text("stddev(1 / k) AS x, corr(1 / k, id) AS y", where="k <> 0"),
}
PLAIN = {
    "all_rows": text("count(*) AS n, sum(id) AS x"),
    "by_k": text("count(*) AS n", "k"),
    "by_s": text("sum(id) AS x", "s", "id > 1", "window(ts, '40 seconds', '20 seconds')"),
}


@pytest.fixture(scope="module")
def rows(spark: Any) -> pa.Table:
    return spark.sql(  # type: ignore[no-any-return]
        "SELECT timestamp_seconds(id div 2) AS ts, cast(id % 5 AS int) AS k, id, "
        "element_at(array('12', 'abc', '7', ''), cast(id % 4 + 1 AS int)) AS s, "
        "if(id % 3 = 0, 'north', concat(id, ' km N of X')) AS place FROM range(240)"
    ).toArrow()


@pytest.fixture(scope="module")
def expected(spark: Any, rows: pa.Table) -> dict[str, pa.Table]:
    session = spark.newSession()
    session.createDataFrame(rows).coalesce(1).createOrReplaceTempView("stream")
    return {name: session.sql(query).toArrow() for name, query in (GUARDED | PLAIN).items()}


def views(queries: dict[str, str]) -> list[str]:
    return [f"CREATE VIEW {name} AS {query}" for name, query in queries.items()]


QUICK = ("argument", "key_and_argument", "filter_by", "conjunction_of_three")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in GUARDED]
)
def test_a_query_alone_computes_nothing_for_rows_that_its_where_refuses(
    spark: Any, rows: pa.Table, expected: dict[str, pa.Table], name: str
) -> None:
    job = weft.weave(spark.createDataFrame(rows), views({name: GUARDED[name]}))
    assert_same_rows(job.answers()[name].toArrow(), expected[name], text=GUARDED[name])


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"phantoms": "never"}, marks=pytest.mark.slow),
        {"phantoms": "always", "groupings": "native"},
        {"phantoms": "always", "groupings": "lfta"},
        {"phantoms": "auto"},
        pytest.param({"strategy": "no_share"}, marks=pytest.mark.slow),
    ],
    ids=lambda options: "-".join(options.values()),
)
def test_nor_do_all_of_them_together_however_partials_are_made(
    spark: Any, rows: pa.Table, expected: dict[str, pa.Table], options: dict[str, Any]
) -> None:
    answers = weft.weave(spark.createDataFrame(rows), views(GUARDED | PLAIN), **options).answers()
    for name, frame in answers.items():
        assert_same_rows(frame.toArrow(), expected[name], text=(GUARDED | PLAIN)[name])


def test_nor_does_a_stream(spark: Any, rows: pa.Table, expected: dict[str, pa.Table], tmp_path: Path) -> None:
    for part in range(3):
        some = rows.slice(80 * part, 80)
        spark.createDataFrame(some).coalesce(1).write.parquet(str(tmp_path / "rows"), mode="append")
    stream = spark.readStream.schema(spark.createDataFrame(rows).schema).option("maxFilesPerTrigger", 1)
    job = weft.weave(stream.parquet(str(tmp_path / "rows")), views(GUARDED | PLAIN), watermark="1 hour")
    run = job.start(sink="memory", checkpoint=tmp_path / "state", available_now=True)
    assert run.wait(300)
    run.drain()
    assert run.metrics()["failed"] == {}
    for name, table in run.answers().items():
        assert_same_rows(table, expected[name], text=(GUARDED | PLAIN)[name])


def test_nor_does_counting_on_many_rows(spark: Any) -> None:
    """Groups and signatures are counted on samples of the rows, by expressions of all queries together."""
    many = spark.sql(
        "SELECT timestamp_millis(id) AS ts, cast(id % 5 AS int) AS k, id, "
        "element_at(array('12', 'abc', '7', ''), cast(id % 4 + 1 AS int)) AS s FROM range(30000)"
    )
    queries = {
        f"by_{key}_{limit}": f"SELECT window.start AS w, {column} AS g, sum(1 / k) AS x FROM stream "
        f"WHERE k <> 0 AND {DIGITS} AND id % {limit} > 1 GROUP BY {column}, window(ts, '10 seconds')"
        for key, column in {"s": "cast(s AS int)", "k": "10 div k"}.items()
        for limit in (3, 5, 7, 11)
    }
    session = spark.newSession()
    session.createDataFrame(many.toArrow()).createOrReplaceTempView("stream")
    for phantoms in ("auto", "always"):
        answers = weft.weave(many, views(queries), phantoms=phantoms).answers()
        for name, frame in answers.items():
            assert_same_rows(frame.toArrow(), session.sql(queries[name]).toArrow(), key=(0, 1), text=queries[name])
