"""Medians, distinct counts, modes, sets and top-k: exact ones as plain Spark gives them, others within their bounds."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
import pytest

import weft
from tests.support.compare import assert_same_rows
from tests.support.streams import Stream, expected, settle
from weft.aggregates import KINDS
from weft.engine.combine.registry import partial_from_spark
from weft.spark import RunFailed, weave

pytestmark = pytest.mark.spark

ROWS = """
SELECT timestamp_micros(1700000000000000 + id * 20000) AS ts, id % 3 AS k, id % 2 AS g,
  CASE WHEN id % 11 = 0 THEN NULL WHEN id % 97 = 0 THEN double('NaN') WHEN id % 7 = 0 THEN -0.0D
    ELSE round(sin(id) * 20, 0) END AS x,
  CAST(id * 31 % 23 AS INT) AS n, nullif(concat('s', id * 17 % 13), 's5') AS s,
  CAST(id * 7 % 90 / 4 AS DECIMAL(9,2)) AS d, date_add(DATE '2024-01-01', CAST(id * 5 % 19 AS INT)) AS t
FROM range(3000)
"""

EXACT = (
    "count(DISTINCT x) AS a, count(DISTINCT s) AS b, count(DISTINCT d) AS c, count(DISTINCT t) AS e",
    "percentile(x, 0.3) AS a, percentile(n, array(0.0, 0.5, 0.99)) AS b, median(d) AS c, count(*) AS e",
    "sort_set(s) AS a, sort_set(t) AS b, sort_set(n) AS c",
    "percentile_cont(0.3) WITHIN GROUP (ORDER BY x) AS a, percentile_disc(0.3) WITHIN GROUP (ORDER BY x ASC) AS b, "
    "percentile_disc(array(0.0, 0.5, 0.99)) WITHIN GROUP (ORDER BY n) FILTER (WHERE x > 5) AS c, max(DISTINCT n) AS e",
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY d) AS a, percentile_cont(0.9) WITHIN GROUP (ORDER BY d) AS b, "
    "mode() WITHIN GROUP (ORDER BY n) AS c, min(DISTINCT s) AS e",
    "median(n) * 2 + 1 AS a, count(DISTINCT n) FILTER (WHERE x > 5) AS b, sum(n) AS c, median(x) FILTER (WHERE n > 99)",
    "approx_count_distinct(n) AS a, percentile_approx(n, 0.5) AS b, percentile_approx(t, array(0.1, 0.9)) AS c",
)
"""The last are approximate over so few values that they are exact. Sets have no order: `sort_set` stands for that."""

WINDOWS = ("'6 seconds', '2 seconds'", "'9 seconds', '3 seconds', '1 second'", "'5 seconds'")


def workload(keys: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for i, calls in enumerate(EXACT):
        by = "".join(f"{key}, " for key in keys)
        where, having = ("WHERE n > 3", "HAVING count(DISTINCT n) > 2") if i % 2 else ("", "")
        grouped = f"GROUP BY {by}window(ts, {WINDOWS[i % 3]}) {having}"
        found[f"q{'_'.join(keys)}{i}"] = f"SELECT {by}window.start AS w, {calls} FROM stream {where} {grouped}"
    return found


def counted(text: str) -> str:
    """Spark's own estimate may be off where weft's cannot be."""
    return text.replace("approx_count_distinct(", "count(DISTINCT ")


def sets_in_order(table: pa.Table) -> pa.Table:
    for place, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            written = [None if v is None else repr(v) for v in table.column(place).to_pylist()]
            table = table.set_column(place, field.name, pa.array(written))
    return table


def test_integers_that_no_float_is_equal_to_are_the_nearest_one_as_in_spark(spark: Any) -> None:
    rows = spark.sql("SELECT timestamp_millis(id * 100) AS ts, 9007199254740993 + id * 3 AS n FROM range(70)").persist()
    rows.createOrReplaceTempView("stream")
    calls = "median(n) AS a, percentile(n, array(0.1, 0.9)) AS b, percentile_disc(0.3) WITHIN GROUP (ORDER BY n) AS c"
    text = f"SELECT window.start AS w, {calls} FROM stream GROUP BY window(ts, '2 seconds', '300 milliseconds')"
    found, plain = weave(rows, text, event_time="ts").answers()["q1"].toArrow(), spark.sql(text).toArrow()
    assert sorted(found.to_pylist(), key=repr) == sorted(plain.to_pylist(), key=repr)


@pytest.mark.parametrize(
    "value",
    [
        "if(id % 2 = 0, 9223372036854775807, -9223372036854775807)",
        "CAST(if(id % 2 = 0, '99999999999999999999.9', '1.5') AS DECIMAL(38,18))",
    ],
)
def test_means_of_bins_that_their_type_cannot_hold_are_those_of_spark(spark: Any, value: str) -> None:
    rows = spark.sql(f"SELECT timestamp_millis(id * 100) AS ts, {value} AS n FROM range(70)").persist()
    rows.createOrReplaceTempView("stream")
    text = (
        "SELECT window.start AS w, histogram_numeric(n, 9) AS a FROM stream "
        "GROUP BY window(ts, '2 seconds', '300 milliseconds')"
    )
    found, plain = weave(rows, text, event_time="ts").answers()["q1"].collect(), spark.sql(text).collect()
    # Spark may give a value two bins, by how its rows are divided.
    middles = [sorted((row.w, sorted({str(bin.x) for bin in row.a})) for row in rows) for rows in (found, plain)]
    assert middles[0] == middles[1]


@pytest.mark.slow
@pytest.mark.parametrize("phantoms", ["always", "never"])
def test_exact_ones_give_the_rows_of_plain_spark_for_every_type_window_and_filter(spark: Any, phantoms: str) -> None:
    rows = spark.sql(ROWS).persist()
    rows.createOrReplaceTempView("stream")
    texts = workload(("k",)) | workload(("k", "g")) | workload(())
    asked = {name: text.replace("sort_set", "collect_set") for name, text in texts.items()}
    answers = weave(
        rows, [f"CREATE VIEW {n} AS {t}" for n, t in asked.items()], event_time="ts", phantoms=phantoms
    ).answers()
    for name, text in texts.items():
        plain = spark.sql(re.sub(r"sort_set\((\w)\)", r"sort_array(collect_set(\1))", counted(text)))
        key = [i for i, column in enumerate(plain.columns) if column in ("k", "g", "w")]
        assert_same_rows(sets_in_order(answers[name].toArrow()), sets_in_order(plain.toArrow()), key=key, text=text)
    rows.unpersist()


def test_percentiles_are_those_of_plain_spark_to_the_last_bit(spark: Any) -> None:
    extremes = ["1", "1e16", "-1e16", "3.3", "-1.7e308", "1.7e308", "'NaN'", "'Infinity'", "'-Infinity'", "7"]
    drawn = f"try_element_at(array({', '.join(f'double({v})' for v in extremes)}), pmod(hash(id), 22) + 1)"
    at = "timestamp_micros(1700000000000000 + id * 300000)"
    rows = spark.sql(f"SELECT {at} AS ts, coalesce({drawn}, sin(id)) AS x FROM range(4000)")
    rows.createOrReplaceTempView("stream")
    calls = "median(x) AS m, percentile(x, array(0.0, 0.1, 0.37, 0.9, 1.0)) AS p"
    text = f"SELECT window.start AS w, {calls} FROM stream GROUP BY window(ts, '2 seconds', '1 second')"
    (found,) = weave(rows, [text], event_time="ts").answers().values()
    plain = {r.w: repr((r.m, r.p)) for r in spark.sql(text).collect()}
    assert {r.w: repr((r.m, r.p)) for r in found.collect()} == plain
    assert len(set(plain.values())) > 300


def test_modes_and_top_k_are_as_common_as_those_of_plain_spark(spark: Any) -> None:
    rows = spark.sql(ROWS)
    rows.createOrReplaceTempView("stream")
    by = "FROM stream GROUP BY k, window(ts, '6 seconds', '2 seconds')"
    calls = "mode(s) AS m, mode(n, true) AS l, approx_top_k(s, 4) AS t, approx_top_k(d) AS d"
    text = f"SELECT k, window.start AS w, {calls} {by}"
    (found,) = weave(rows, [text], event_time="ts").answers().values()
    plain = {(r.k, r.w): r for r in spark.sql(text).collect()}
    lists = f"SELECT k, window.start AS w, collect_list(s) AS s, collect_list(n) AS n, count(*) AS z {by}"
    values = {(r.k, r.w): r for r in spark.sql(lists).collect()}
    rows_found = found.collect()
    assert len(rows_found) == len(plain) > 50
    for row in rows_found:
        spark_row, held = plain[row.k, row.w], values[row.k, row.w]
        assert held.s.count(row.m) == held.s.count(spark_row.m)
        assert row.l == spark_row.l, "of values as common, the least"
        for name in ("t", "d"):
            assert [p["count"] for p in row[name]] == [p["count"] for p in spark_row[name]]
        for item, count in row.t:
            assert count == (held.z - len(held.s) if item is None else held.s.count(item))


def test_histograms_with_room_for_every_value_have_the_bins_of_plain_spark(spark: Any) -> None:
    """Spark may give a value several bins, one for each of its partial results: they are put together."""
    rows = spark.sql(ROWS)
    rows.createOrReplaceTempView("stream")
    calls = "histogram_numeric(n, 23), histogram_numeric(d, 90), histogram_numeric(t, 20) FILTER (WHERE n > 5), "
    calls += "histogram_numeric(nullif(x, double('NaN')), 50), histogram_numeric(ts, 200)"
    text = f"SELECT k, window.start AS w, {calls} FROM stream GROUP BY k, window(ts, '6 seconds', '2 seconds')"
    (found,) = weave(rows, [text], event_time="ts").answers().values()
    plain = spark.sql(text)
    assert found.schema.simpleString() == plain.schema.simpleString()
    theirs = {(row.k, row.w): row for row in plain.collect()}
    ours = {(row.k, row.w): row for row in found.collect()}
    assert ours.keys() == theirs.keys()
    for key, row in ours.items():
        for bins, others in zip(row[2:], theirs[key][2:], strict=True):
            together: Counter[Any] = Counter()
            for x, y in others:
                together[x] += y
            assert [(x, y) for x, y in bins] == sorted(together.items())


def test_top_k_by_sum_gives_the_greatest_of_a_group_by_of_plain_spark(spark: Any) -> None:
    rows = spark.sql(ROWS)
    rows.createOrReplaceTempView("stream")
    window = "window(ts, '6 seconds', '2 seconds')"
    calls = {"a": ("s", "n", 4), "b": ("n", "d", 3), "c": ("d", "n / 4D", 5), "e": ("t", "CAST(n AS BIGINT) - 11", 30)}
    asked = ", ".join(f"top_k_sum({item}, {measure}, {k}) AS {name}" for name, (item, measure, k) in calls.items())
    asked += ", top_k_sum(s, n) FILTER (WHERE n > 9)"
    text = f"SELECT k, window.start AS w, {asked} FROM stream GROUP BY k, {window}"
    (found,) = weave(rows, [text], event_time="ts").answers().values()
    assert found.columns == ["k", "w", *calls, "top_k_sum(s, n) filter(WHERE n > 9)"]
    answers = {(row.k, row.w): row for row in found.collect()}
    assert len(answers) > 50
    for place, (item, measure, k, condition) in enumerate(
        [*((*call, "true") for call in calls.values()), ("s", "n", 5, "n > 9")], 2
    ):
        sums = f"""SELECT k, window.start AS w, {item} AS item, sum({measure}) AS sum FROM stream
            WHERE {item} IS NOT NULL AND {measure} IS NOT NULL AND {condition} GROUP BY k, {window}, {item}"""
        first = f"""SELECT k, w, slice(array_sort(collect_list(struct(item, sum)), (x, y) -> CASE WHEN x.sum > y.sum
            OR (x.sum = y.sum AND x.item < y.item) THEN -1 ELSE 1 END), 1, {k}) AS v FROM ({sums}) GROUP BY k, w"""
        plain = spark.sql(first)
        assert found.schema[place].dataType.simpleString() == plain.schema["v"].dataType.simpleString()
        for row in plain.collect():
            assert list(map(tuple, answers[row.k, row.w][place])) == list(map(tuple, row.v))


@pytest.mark.slow
def test_batches_a_restart_a_joining_query_and_a_question_see_the_same_values(spark: Any, tmp_path: Path) -> None:
    by = "FROM stream GROUP BY k, window(ts, '60 seconds', '15 seconds')"
    first = f"SELECT k, window.start AS start, count(DISTINCT v) AS d, median(v) AS m, count(*) AS n {by}"
    approximate = f"SELECT k, window.start AS start, approx_count_distinct(v) AS d, percentile_approx(v, 0.9) AS p {by}"
    sums = f"SELECT k, window.start AS start, top_k_sum(v % 3, v, 3) AS t, histogram_numeric(v % 5, 6) AS h {by}"
    joined = f"SELECT k, window.start AS start, percentile(v, 0.9) AS p {by}"
    stream = Stream(spark, tmp_path)
    stream.write(4)
    queries = f"CREATE VIEW first AS {first}; CREATE VIEW approximate AS {approximate}; CREATE VIEW sums AS {sums}"
    run = stream.start(queries)
    settle(run)
    run.stop()
    run = stream.start(queries)
    stream.write(3)
    settle(run)
    run.add(f"CREATE VIEW joined AS {joined}", since="state")
    stream.write(3)
    settle(run)
    question = first.replace("'60 seconds'", "'30 seconds'")
    asked = run.ask(question)
    starts = asked.column("start").cast(pa.int64()).to_numpy()
    seen = expected(stream, question, since=int(starts.min()), until=int(starts.max()) + 30_000_000)
    assert_same_rows(asked, seen, key=[0, 1], text=question)
    run.drain()
    run.stop()
    for name, text in (("first", first), ("approximate", approximate)):
        assert_same_rows(stream.answers(name), expected(stream, counted(text)), key=[0, 1], text=text)
    by_item = f"SELECT k, window.start AS start, v % 3 AS item, sum(v) AS sum, count(*) AS n {by}, v % 3"
    for row in expected(stream, by_item).to_pylist():
        (mine,) = (r for r in stream.answers("sums").to_pylist() if (r["k"], r["start"]) == (row["k"], row["start"]))
        assert {"item": row["item"], "sum": row["sum"]} in mine["t"]
    rows = stream.answers("joined")
    since = rows.column("start").cast(pa.int64()).to_numpy().min()
    assert rows.num_rows > 10
    assert_same_rows(rows, expected(stream, joined, since=int(since)), key=[0, 1], text=joined)


def test_answers_of_values_are_sent_again_when_late_rows_come_for_them(spark: Any, tmp_path: Path) -> None:
    calls = "count(DISTINCT v) AS d, median(v) AS m, percentile_approx(v, 0.9) AS p, approx_count_distinct(v) AS a"
    text = f"SELECT k, window.start AS start, {calls} FROM stream GROUP BY k, window(ts, '30 seconds', '10 seconds')"
    stream = Stream(spark, tmp_path)
    stream.write(6)
    run = stream.start(f"CREATE VIEW q AS {text}", watermark=0, late="update", allowed_lateness="1 minute")
    settle(run)
    run.drain()
    newest = {}
    for row in sorted(stream.answers("q").to_pylist(), key=lambda row: row["weft_revision"]):
        newest[row["k"], row["start"]] = row
    assert max(row["weft_revision"] for row in newest.values()) > 0
    schema = stream.answers("q").schema
    table = pa.Table.from_pylist(list(newest.values()), schema).drop(["weft_revision", "weft_retracted"])
    assert_same_rows(table, expected(stream, counted(text)), key=[0, 1], text=text)


def test_a_job_stops_before_it_keeps_more_values_than_it_may_and_goes_on_with_a_higher_limit(
    spark: Any, tmp_path: Path
) -> None:
    text = "SELECT k, window.start AS start, median(v) AS m FROM stream GROUP BY k, window(ts, '2 minutes', '1 minute')"
    stream = Stream(spark, tmp_path)
    stream.write(6)
    run = stream.start(f"CREATE VIEW q AS {text}", synopsis_limit=1500)
    assert "use percentile_approx(v, 0.5, 100) (25.2 KiB per group at most)" in run.job.explain()
    with pytest.raises(RunFailed, match="above synopsis_limit=1,500; weave with a higher one"):
        run.wait()
    kept = [batch.synopsis_bytes for batch in run.batches()]
    assert kept
    assert 0 < max(kept) <= 1500
    again = stream.start(f"CREATE VIEW q AS {text}", synopsis_limit=1 << 20)
    settle(again)
    again.drain()
    assert_same_rows(stream.answers("q"), expected(stream, text), key=[0, 1], text=text)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_approximate_ones_keep_their_bounds_in_99_of_100_windows(spark: Any, seed: int) -> None:
    # Of `m`, a third is one of three items: so common that a sketch of 200 items may not miss them.
    rows = spark.range(120_000).selectExpr(
        "timestamp_micros(1700000000000000 + id * 1000) AS ts", "id % 5 AS k",
        f"pmod(xxhash64(id, {seed}), 4000) AS n", f"exp(pmod(xxhash64(id, {seed}, 1), 1000) / 100D) AS x",
        f"CASE WHEN pmod(xxhash64(id, {seed}, 2), 3) = 0 THEN pmod(xxhash64(id, {seed}, 3), 3) - 3 "
        f"ELSE pmod(xxhash64(id, {seed}, 4), 1000) END AS m",
    )  # fmt: skip
    by = "FROM stream GROUP BY k, window(ts, '20 seconds', '4 seconds')"
    sketches = f"""SELECT k, window.start AS w, approx_count_distinct(n) AS d, percentile_approx(x, 0.5, 50) AS p,
        percentile_approx(n, array(0.1, 0.99), 50) AS q, approx_top_k(m, 3, 200) AS t,
        histogram_numeric(x, 10) AS h {by}"""
    (found,) = weave(rows, [sketches], event_time="ts").answers().values()
    rows.createOrReplaceTempView("stream")
    whole = f"SELECT k, window.start AS w, collect_list(n) AS n, collect_list(x) AS x, collect_list(m) AS m {by}"
    values = {(r.k, r.w): (np.sort(r.n), np.sort(r.x), np.array(r.m)) for r in spark.sql(whole).collect()}
    kept = {"d": [], "p": [], "q": [], "h": []}
    for r in found.collect():
        n, x, m = values[r.k, r.w]
        different = len(np.unique(n))
        kept["d"].append(abs(r.d - different) <= 2.576 * 0.05 * different)
        kept["p"].append(_rank_error(x, r.p, 0.5) <= 1 / 50)
        kept["q"] += [_rank_error(n, q, p) <= 1 / 50 for q, p in zip(r.q, (0.1, 0.99), strict=True)]
        assert len(r.h) == 10
        assert sum(b.y for b in r.h) == len(x)
        below = np.cumsum([b.y for b in r.h])[:-1]
        kept["h"] += [_beside(x, *bins, count) <= 0.01 for bins, count in zip(pairwise(r.h), below, strict=True)]
        assert {item for item, _ in r.t} == {-3, -2, -1}
        for item, count in r.t:
            assert abs(count - np.sum(m == item)) <= len(m) / 200, "a slice may be off by its rows over the items kept"
    for name, held in kept.items():
        assert len(held) > 100
        assert np.mean(held) >= 0.99, name


@pytest.mark.parametrize("size", [1, 2, 300, 20_000])
def test_sketches_that_spark_writes_are_read_as_the_library_reads_them(spark: Any, size: int) -> None:
    calls = "theta_sketch_agg(id, 9) AS t", "kll_sketch_agg_bigint(id, 100) AS k"
    row = spark.range(size).selectExpr(*calls).first()
    theta = datasketches.compact_theta_sketch.deserialize(bytes(row.t))
    hashes, _, limits = partial_from_spark(KINDS["theta"], (pa.array([bytes(row.t)]),))
    assert sorted(hashes.to_pylist()[0]) == sorted(theta)
    assert limits.to_pylist() == [theta.theta64]
    values, weights = partial_from_spark(KINDS["kll_bigint"], (pa.array([bytes(row.k)]),))
    assert sum(weights.to_pylist()[0]) == size
    assert set(values.to_pylist()[0]) <= set(range(size))


def _rank_error(values: Any, found: float, fraction: float) -> float:
    """How far the value's place in the order is from the fraction that was asked for, as a share of all."""
    low, high = np.searchsorted(values, found, "left"), np.searchsorted(values, found, "right")
    return max(0.0, low / len(values) - fraction, fraction - high / len(values))


def _beside(values: Any, lower: Any, upper: Any, count: float) -> float:
    """How far this is from how many rows lie below some place between two bins, as a share of all."""
    low, high = np.searchsorted(values, lower.x, "left"), np.searchsorted(values, upper.x, "right")
    return max(0.0, low - count, count - high) / len(values)


@pytest.mark.parametrize(
    ("measure", "reason"),
    [
        ("CAST(n AS DECIMAL(20,2))", "decimals of 18 digits at most"),
        ("n * INTERVAL '1' HOUR", "adds up numbers, not interval"),
    ],
)
def test_measures_that_cannot_be_added_up_are_refused(spark: Any, measure: str, reason: str) -> None:
    text = f"SELECT top_k_sum(k, {measure}, 2) AS v FROM stream GROUP BY window(ts, '1 minute')"
    with pytest.raises(weft.WeftError, match=reason):
        weave(spark.sql(ROWS), [text], event_time="ts")


def test_values_of_nested_types_are_refused_with_a_way_out(spark: Any) -> None:
    text = "SELECT count(DISTINCT struct(k, n)) AS v FROM stream GROUP BY window(ts, '1 minute')"
    with pytest.raises(weft.WeftError, match="does not keep values of type struct"):
        weave(spark.sql(ROWS), [text], event_time="ts")
