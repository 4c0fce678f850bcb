"""Groupings that are rolled up from finer ones: the same rows as plain Spark, whatever feeds what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.compare import assert_same_rows
from weft.aggregates import register
from weft.calibration.file import Calibration, calibration_file, save_calibration
from weft.calibration.table_costs import TableCosts
from weft.optimizer.phantoms.rollup import roll_up
from weft.spark import weave
from weft.spark.execution.failing_queries import QueriesFailed
from weft.spark.options import LEAST_MEMORY
from weft.spark.partial.aggregate import timed
from weft.spark.partial.sampling import LARGER
from weft.spark.partial.statistics import FEWEST
from weft.spark.physical.plan import FromRows, HashTables
from weft.spark.physical.row_feeds import exchangeable, exchanged_feeds, partial_types, single_row_feeds

pytestmark = pytest.mark.spark

KEYS = ("s", "i", "d", "t", "struct(s, i)", "i % 2", "x")
"""A string, an integer, a decimal, a date, a struct, an expression and a float, each with NULLs; NaN and -0.0 too."""

ROWS = """
SELECT timestamp_micros(1700000000000000 + id * 250000) AS ts,
  nullif(concat('k', id * 7 % 5), 'k3') AS s, CAST(nullif(id * 13 % 4, 2) AS INT) AS i,
  CAST(nullif(id % 3, 1) / 4 AS DECIMAL(9,2)) AS d, date_add(DATE '2024-01-01', CAST(id % 3 AS INT)) AS t,
  CASE id % 4 WHEN 0 THEN double('NaN') WHEN 1 THEN -0.0D WHEN 2 THEN 0.0D END AS x,
  CAST(id * 31 % 101 AS INT) AS v, CAST(id * 17 % 1000 / 10 AS DECIMAL(12,3)) AS m, sqrt(id) AS r
FROM range(2000)
"""

CALLS = (
    "count(*) AS n, sum(v) AS a, sum(m) AS b",
    "avg(m) AS a, max(r) AS b, min(s) AS c",
    "max_by(v, r) AS a, min_by(s, r) AS b, last(v) AS c, first(m) AS d",
    "bit_xor(v) AS a, bit_or(v) AS b, bit_and(v) AS c, bool_or(v > 99) AS d",
    "count(v) FILTER (WHERE v > 50) AS a, sum(r) AS b, avg(v) AS c",
)

FILTERS = ("", "WHERE v > 20", "WHERE v > 20 AND i = 1", "WHERE s IS NOT NULL", "WHERE m < 50")


def workload(key_sets: list[tuple[str, ...]]) -> dict[str, str]:
    """Every grouping with other windows, calls and filters."""
    found = {}
    for i, keys in enumerate(key_sets):
        for j in range(2):
            named = "".join(f"{key} AS g{n}, " for n, key in enumerate(keys))
            by = "".join(f"{key}, " for key in keys)
            found[f"q{i}_{j}"] = (
                f"SELECT {named}window.start AS w, {CALLS[(i + j) % len(CALLS)]} FROM stream "
                f"{FILTERS[(2 * i + j) % len(FILTERS)]} GROUP BY {by}"
                f"window(ts, '{30 + 10 * j} seconds', '{10 + 5 * (i % 3)} seconds')"
            )
    return found


KEY_SETS: list[tuple[str, ...]] = [
    (), ("s",), ("i", "d"), ("t", "x"), ("struct(s, i)",), ("i % 2", "s"), ("d", "s", "x")
]  # fmt: skip


def plainly(spark: Any, texts: dict[str, str]) -> dict[str, Any]:
    """What plain Spark gives; interpreting beats compiling for a few rows."""
    beside = spark.newSession()
    beside.conf.set("spark.sql.codegen.wholeStage", "false")
    beside.sql(ROWS).coalesce(1).createOrReplaceTempView("stream")
    return {name: beside.sql(text).toArrow() for name, text in texts.items()}


@pytest.mark.slow
def test_rolled_up_groupings_give_the_rows_of_plain_spark_for_keys_of_any_type(spark: Any) -> None:
    """Rolled up by Spark, and in tables so small that most rows throw another group out."""
    table = spark.sql(ROWS)
    queries = workload(KEY_SETS)
    texts = [f"CREATE VIEW {name} AS {text}" for name, text in queries.items()]
    rolled = weave(table, texts, phantoms="always", groupings="native")
    by_tables = weave(table, texts, phantoms="always", groupings="lfta", table_memory=LEAST_MEMORY)
    expected = plainly(spark, queries)
    for job in (rolled, by_tables):
        answers = {name: frame.toArrow() for name, frame in job.answers().items()}
        for name, rows in expected.items():
            assert rows.num_rows > 10
            assert_same_rows(answers[name], rows, text=queries[name])
    found, tables = rolled.physical.partials.choice, by_tables.physical.partials.means
    assert found is not None
    assert found.configuration.phantoms == {frozenset(KEYS)}
    assert isinstance(tables, HashTables)
    assert len(tables.choice.configuration.phantoms) == 1
    # Those that choose values by others, or keep strings, are made from rows beside the tables.
    assert 1 < len(tables.feeds) < len(by_tables.physical.feeds)
    shared = by_tables.explain("json")["sharing"]
    assert shared["means"] == "lfta"
    assert f"  tables  {shared['fed']}   a row costs" in by_tables.explain()
    assert sum(p["fed_by"] is not None for p in shared["passes"]) == len(tables.feeds)
    assert 'aria-label="Rows, phantoms and passes"' in by_tables.explain("html")


@pytest.mark.parametrize("buckets", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_groupings_that_do_not_gather_give_the_rows_of_plain_spark(
    spark: Any, monkeypatch: pytest.MonkeyPatch, buckets: int
) -> None:
    """Sent as rows where buckets can make partials of them, else as partials of a row each."""
    monkeypatch.setattr("weft.spark.physical.row_feeds.GATHERED", -1.0)
    monkeypatch.setattr(
        "weft.spark.physical.rollup.roll_up", lambda group_bys, finer, prices: roll_up(group_bys, {}, prices)
    )
    queries = workload(KEY_SETS)
    # Beside windows that overlap, those of one slice, with and without filters in one pass.
    queries |= {
        f"alone_{i}_{j}": f"SELECT {keys}, window, {calls} AS y FROM stream {FILTERS[(i + j) % 5 * (i % 2)]} "
        f"GROUP BY {keys}, window(ts, '50 seconds') HAVING count(*) > 1"
        for i, keys in enumerate(["t", "s, t", "d, t", "x, t"])
        for j, calls in enumerate(["sum(m) + count(v)", "min(d)", "max(s)", "avg(r)"])
    }
    texts = [f"CREATE VIEW {name} AS {text}" for name, text in queries.items()]
    job = weave(spark.sql(ROWS), texts, groupings="native", buckets=buckets)
    answers = {name: frame.toArrow() for name, frame in job.answers().items()}
    for name, rows in plainly(spark, queries).items():
        assert rows.num_rows > 5
        assert_same_rows(answers[name], rows, text=queries[name])
    sendable = [feed for feed in job.physical.feeds if feed.can_send_rows]
    in_rows = exchangeable(sendable, job.physical, partial_types(timed(job.stream, job.physical), sendable))
    means = job.physical.partials.means
    assert isinstance(means, FromRows)
    assert means.exchanged == {feed.layout.number for feed in in_rows}
    assert means.exchanged | means.single_rows == {feed.layout.number for feed in sendable}
    sent = [set(feed.keys.values()) for feed in in_rows]
    assert {"s", "t"} in sent
    assert not any({"x", "struct(s, i)"} & keys for keys in sent)
    assert len(in_rows) < len(sendable) < len(job.physical.feeds)


def test_who_gathers_comes_along_where_rows_are_sent_to_its_buckets_for_others(spark: Any) -> None:
    """A row that is sent for b, c and d is nearly always in both of two buckets, and nearly never in one of 100."""
    table = spark.sql(
        "SELECT timestamp_millis(id) AS ts, id % 400 AS a, id AS b, -id AS c, id * 3 AS d, id % 2 AS e FROM range(2000)"
    )
    window = "window(ts, '1 minute')"
    job = weave(table, [f"SELECT {key}, window, count(*) FROM stream GROUP BY {key}, {window}" for key in "abcde"])
    assert job.run_bounded("noop").answers == 400 + 3 * 2000 + 2
    choice, feeds = job.physical.partials.choice, job.physical.feeds

    def keys(numbers: frozenset[int]) -> str:
        return "".join(sorted(key for feed in feeds if feed.layout.number in numbers for key in feed.keys.values()))

    assert choice is not None
    assert sorted(group_by.partials for group_by in choice.group_bys) == [0.001, 0.2, 1, 1, 1]
    partials = {feed.layout.number: group_by.partials for feed, group_by in zip(feeds, choice.group_bys, strict=True)}
    assert keys(exchanged_feeds(feeds, partials, buckets=1)) == "abcde"
    assert keys(exchanged_feeds(feeds, partials, buckets=2)) == "abcd"
    assert keys(exchanged_feeds(feeds, partials, buckets=100)) == "bcd"
    assert keys(single_row_feeds(feeds, partials)) == "bcd"


@pytest.mark.parametrize("ansi", [True, False])
def test_a_sum_that_overflows_where_nothing_gathers_is_what_spark_makes_of_it(spark: Any, ansi: bool) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    table = session.sql(
        "SELECT timestamp_millis(id) AS ts, CASE id WHEN 5 THEN 4 ELSE id END AS a, 9223372036854775000 AS v "
        "FROM range(3000)"
    )
    table.createOrReplaceTempView("stream")
    window = "window(ts, '1 minute')"
    queries = {
        "total": f"SELECT a, window, sum(v) AS x FROM stream GROUP BY a, {window}",
        "most": f"SELECT -a AS b, window, max(v) AS x FROM stream GROUP BY -a, {window}",
    }
    job = weave(table, [f"CREATE VIEW {name} AS {text}" for name, text in queries.items()])
    if ansi:
        with pytest.raises(QueriesFailed) as raised:
            job.run_bounded("noop")
        assert raised.value.reasons.keys() == {"total"}
    else:
        for name, frame in job.answers().items():
            assert_same_rows(frame.toArrow(), session.sql(queries[name]).toArrow(), text=queries[name])
    means = job.physical.partials.means
    assert isinstance(means, FromRows)
    assert len(means.exchanged if ansi else means.single_rows) == 2


class Logarithms:
    lift = ("sum(ln({0}))", "count({0})")
    merge = ("sum({0})", "sum({1})")
    identity = (0.0, 0.0)

    @staticmethod
    def combine(older: Any, newer: Any) -> Any:
        return older[0] + newer[0], older[1] + newer[1]

    @staticmethod
    def lower(logarithms: Any, count: Any) -> Any:
        return np.exp(logarithms / count)


def by(key: str, call: str) -> str:
    window = "window(ts, '1 minute', '20 seconds')"
    return f"SELECT {key}, window.start AS w, {call} AS x FROM stream GROUP BY {key}, {window}"


def test_what_spark_cannot_merge_is_made_from_rows_beside_a_phantom(spark: Any) -> None:
    register("log_mean", Logarithms)
    table = spark.sql(ROWS)
    queries = {
        "a": by("s", "stddev(r)"), "b": by("i", "sum(m)"), "c": by("t", "count(*)"), "d": by("s, t", "log_mean(v + 1)")
    }  # fmt: skip
    job = weave(table, [f"CREATE VIEW {n} AS {text}" for n, text in queries.items()], phantoms="always")
    answers = {name: frame.toArrow() for name, frame in job.answers().items()}
    found = job.physical.partials.choice
    assert found is not None
    assert [table is None for table in found.tables] == [feed.keys == {"k0": "s"} for feed in job.physical.feeds]
    queries["d"] = queries["d"].replace("log_mean(v + 1)", "exp(avg(ln(v + 1)))")
    for name, expected in plainly(spark, queries).items():
        assert_same_rows(answers[name], expected, text=queries[name])


def test_phantoms_are_chosen_by_the_groups_of_the_rows(spark: Any) -> None:
    """Many rows a group pay for a finer grouping; a group a row does not."""
    few = spark.sql("SELECT timestamp_millis(id) AS ts, id % 7 AS a, id % 5 AS b, id % 3 AS c FROM range(20000)")
    many = spark.sql("SELECT timestamp_millis(id) AS ts, id AS a, -id AS b, id * 3 AS c FROM range(20000)")
    queries = [by("a", "count(*)"), by("b", "sum(a)"), by("c", "max(b)"), by("a, b", "count(*)")]

    def chosen(table: Any) -> str:
        job = weave(table, queries)
        job.run_bounded("noop")
        found = job.physical.partials.choice
        assert found is not None
        assert found.cost <= found.unshared
        assert f"  fed  {found.configuration}   a row costs {found.cost:.2f} probes" in job.explain()
        shared = job.explain("json")["sharing"]
        assert (shared["fed"], shared["cost"]) == (str(found.configuration), found.cost)
        return str(found.configuration)

    assert chosen(few) == "abc(a ab b c)"
    assert chosen(many) == "a ab b c"
    job = weave(few.limit(FEWEST - 1), queries)
    job.run_bounded("noop")
    assert job.physical.partials.choice is None


def test_groups_that_meet_again_only_in_hundreds_of_thousands_of_rows_are_seen_to_gather(spark: Any) -> None:
    """The first fifty thousand rows have more than half as many groups as rows."""
    table = spark.range(LARGER).selectExpr(
        "timestamp_micros(id) AS ts", "pmod(xxhash64(id), 40000) AS a", "pmod(xxhash64(id), 40000) div 2 AS b"
    )
    job = weave(table, [by("a", "count(*)"), by("b", "count(*)")])
    job.run_bounded("noop")
    found = job.physical.partials.choice
    assert found is not None
    assert [group_by.partials for group_by in found.group_bys] == pytest.approx([0.2, 0.1], rel=0.02)
    partials = {n: group_by.partials for n, group_by in enumerate(found.group_bys)}
    assert single_row_feeds(job.physical.feeds, partials) == set()


def test_tables_beside_spark_are_taken_where_they_are_clearly_cheaper(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    table = spark.sql("SELECT timestamp_millis(id) AS ts, id AS a, -id AS b FROM range(5000)")

    def tabled(**dearer: float) -> bool:
        prices = {"row": 1e-9, "probe": 1e-9, "eviction": 1e-7, "native_probe": 1e-9, "native_eviction": 1e-7, **dearer}
        save_calibration(Calibration(table_costs=TableCosts(**prices)), calibration_file())
        job = weave(table, [by("a", "count(*)"), by("b", "sum(a)")])
        job.run_bounded("noop")
        return isinstance(job.physical.partials.means, HashTables)

    assert tabled(native_eviction=1e-5)
    assert not tabled(native_eviction=1.1e-7), "prices are not that exact"
