"""The judges are judged: the oracle against Spark, and the comparison against altered answers."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from tests.support.compare import allowances, assert_same_rows, close, spark_answers
from tests.support.naive import AGGREGATES, aggregate, answers, emitted, slack, watermarks, windows_of
from tests.support.twin import Call, Fragment, KeyColumn, Query, ValueColumn, WindowColumn, greater
from tests.support.workloads import ARGUMENTS, SECOND, Case, batchings, cases, record, rows
from weft.model import Window

SEEDED = settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)


# The oracle against Spark


@pytest.mark.slow
@pytest.mark.spark
@settings(SEEDED, max_examples=12)
@given(case=cases(min_queries=8, max_queries=12))
def test_the_oracle_gives_the_rows_that_spark_gives(spark: Any, case: Case) -> None:
    tables = spark_answers(spark, case.table, case.queries)
    for query in case.queries:
        assert_same_rows(tables[query.name], case.naive(query))


@pytest.mark.slow
@pytest.mark.spark
@settings(SEEDED, max_examples=4)
@given(case=cases(max_queries=8, ties=True))
def test_the_oracle_gives_the_rows_that_spark_gives_with_equal_event_times(spark: Any, case: Case) -> None:
    tables = spark_answers(spark, case.table, case.queries)
    for query in case.queries:
        assert_same_rows(tables[query.name], case.naive(query))


@pytest.mark.slow
@pytest.mark.spark
@settings(SEEDED, max_examples=6)
@given(case=cases(max_queries=6))
def test_spark_agrees_with_itself_on_the_rows_in_another_order(spark: Any, case: Case) -> None:
    backwards = case.table.take(pa.array(range(len(case.rows))[::-1]))
    forth, back = (spark_answers(spark, table, case.queries) for table in (case.table, backwards))
    for query in case.queries:
        allowed = allowances(case.naive(query))
        assert_same_rows(
            back[query.name], forth[query.name], magnitudes=allowed, key=query.key_positions, text=query.text
        )


@pytest.mark.spark
def test_first_without_alias_keeps_its_name_when_it_is_rewritten_for_spark(spark: Any) -> None:
    table = pa.table({"ts": pa.array([1, 0], pa.timestamp("us", tz="UTC")), "n": pa.array([5, 6], pa.int32())})
    call = Call("first", (Fragment.column("n"),))
    query = Query("q1", Window(10 * SECOND, 10 * SECOND), (WindowColumn("end"), ValueColumn((call,))))
    assert spark_answers(spark, table, [query])["q1"].select(["first(n)"]).to_pylist() == [{"first(n)": 6}]


# Windows, watermarks, late rows


def test_a_window_holds_its_begin_and_not_its_end_also_before_1970() -> None:
    assert windows_of(Window(4, 2), 4) == [(2, 6), (4, 8)]
    assert windows_of(Window(4, 2, 1), -1) == [(-3, 1), (-1, 3)]
    assert windows_of(Window(3, 3, -1), 2) == [(2, 5)]


def test_a_late_row_counts_in_the_windows_that_are_still_open() -> None:
    # windows of 4 every 2; delay 1
    # batch 0: 1, 5  watermark 4: [-2, 2) and [0, 4) are answered after it
    # batch 1: 3     misses [0, 4), counts in [2, 6)
    # batch 2: 9     watermark 8: [2, 6) and [4, 8) are answered after it
    emission = emitted([[1, 5], [3], [9]], Window(4, 2), delay=1)
    assert watermarks([[1, 5], [3], [9]], 1) == [4, 4, 8]
    assert emission.answered == [[(-2, 2), (0, 4)], [], [(2, 6), (4, 8)]]
    assert emission.drained == [(6, 10), (8, 12)]
    assert emission.late == [(1, 0)]
    assert emission.dropped == 1
    assert [span for place, span in emission.counted if place == (1, 0)] == [(2, 6)]


def test_a_row_without_event_time_neither_counts_nor_moves_the_watermark() -> None:
    emission = emitted([[None], [None, 3]], Window(2, 2), delay=0)
    assert emission.counted == [((1, 1), (2, 4))]
    assert watermarks([[None], [None, 3]], 0) == [None, 3]


def test_answers_come_when_the_watermark_passes_and_late_rows_that_the_filter_drops_are_not_late() -> None:
    n = Fragment.column("n")
    query = Query(
        "q1",
        Window(4, 4),
        (WindowColumn("end"), KeyColumn(0), ValueColumn((Call("sum", (n,)),), alias="total")),
        keys=(Fragment.column("k"),),
        where=Fragment("n > 0", lambda r: greater(r["n"], 0)),
    )
    batches = [
        [{"ts": 0, "k": "a", "n": 1}, {"ts": 1, "k": None, "n": 2}, {"ts": 5, "k": "a", "n": 3}],
        [{"ts": 2, "k": "a", "n": 10}, {"ts": 2, "k": "a", "n": -1}, {"ts": 6, "k": "a", "n": 4}],
    ]
    result = answers(query, batches, delay=0)
    assert [[a.cells for a in batch] for batch in result.batches] == [[(4, "a", 1), (4, None, 2)], []]
    assert [a.cells for a in result.drained] == [(8, "a", 7)]
    assert result.late == 1
    assert sum(a.cells[2] for a in answers(query, batches)) == 20


# Aggregates


def test_every_aggregate_that_workloads_ask_for_has_an_oracle() -> None:
    assert set(ARGUMENTS) <= set(AGGREGATES)


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        ("count", [None, 1], 1),
        ("sum", [None], None),
        ("sum", [math.inf, -math.inf], math.nan),
        ("sum", [1e16, 1.0, -1e16], 1.0),
        ("max", [1.0, math.nan], math.nan),
        ("min", [1.0, math.nan], 1.0),
        ("min", [math.nan], math.nan),
        ("stddev_samp", [1.0], None),
        ("stddev_pop", [1.0], 0.0),
        ("var_pop", [math.inf], math.nan),
        ("skewness", [2.0, 2.0], None),
        ("kurtosis", [1.0, 2.0], -2.0),
        ("bool_and", [None, True], True),
        ("bit_xor", [5, None, 1], 4),
    ],
)
def test_an_aggregate_of_nulls_and_extremes(function: str, values: list[Any], expected: Any) -> None:
    result = aggregate(function, [(v,) for v in values])
    assert (result is None) == (expected is None)
    assert result is None or close(float(result), float(expected), None)


def test_first_is_the_value_of_the_earliest_row_even_where_it_is_null() -> None:
    assert aggregate("first", [(3, 20), (None, 10)]) is None
    assert aggregate("last", [(3, 20), (None, 10)]) == 3


def test_slack_grows_with_what_cancels_and_is_none_for_exact_aggregates() -> None:
    assert slack("sum", [(1e16,), (-1e16,)]) == pytest.approx(2e4)
    assert slack("sum", [(1.0,)]) == pytest.approx(1e-12)
    assert slack("sum", [(1,)]) == 0.0
    assert slack("max", [(1e16,)]) is None


# Comparison

TYPES = pa.schema(
    [("k", pa.string()), ("w", pa.timestamp("us", tz="UTC")), ("total", pa.float64()), ("m", pa.decimal128(5, 2))]
)
TIME = datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)
CELLS = [
    ("a", TIME, 1.5, Decimal("1.00")),
    (None, TIME, math.nan, None),
    ("a", TIME + timedelta(seconds=1), -0.0, Decimal("2.50")),
]


def table(cells: list[tuple[Any, ...]], schema: pa.Schema = TYPES) -> pa.Table:
    return pa.table([pa.array(c, f.type) for c, f in zip(zip(*cells), schema)], schema=schema)


def test_rows_are_the_same_in_any_order_with_nan_and_minus_zero() -> None:
    turned = [*CELLS[1:], CELLS[0]]
    turned[1] = (*turned[1][:2], 0.0, turned[1][3])
    assert_same_rows(table(turned), table(CELLS), key=(0, 1))
    assert_same_rows(table(turned), table(CELLS))


@pytest.mark.parametrize(
    ("row", "column", "value"),
    [(0, 2, 1.5000001), (0, 2, None), (1, 2, 0.0), (2, 3, Decimal("2.51")), (0, 0, "b"), (0, 1, TIME - timedelta(1))],
)
@pytest.mark.parametrize("key", [(0, 1), None])
def test_an_altered_cell_is_found_and_shown(row: int, column: int, value: Any, key: Any) -> None:
    altered = [list(cells) for cells in CELLS]
    altered[row][column] = value
    with pytest.raises(AssertionError, match=r"(?s)k=.*SELECT 1"):
        assert_same_rows(table([tuple(r) for r in altered]), table(CELLS), key=key, text="SELECT 1")


def test_a_missing_row_a_doubled_row_and_a_row_too_many_are_found() -> None:
    for cells in (CELLS[1:], [*CELLS, CELLS[0]], [*CELLS, ("c", TIME, 1.0, None)]):
        with pytest.raises(AssertionError, match="rows, expected"):
            assert_same_rows(table(cells), table(CELLS), key=(0, 1))


def test_another_type_or_name_is_found() -> None:
    wider = TYPES.set(3, pa.field("m", pa.decimal128(6, 2)))
    with pytest.raises(AssertionError, match="column m has type"):
        assert_same_rows(table(CELLS, wider), table(CELLS))
    with pytest.raises(AssertionError, match="columns are"):
        assert_same_rows(table(CELLS).rename_columns(["k", "w", "sum", "m"]), table(CELLS))


def test_a_cell_may_be_off_by_its_slack_and_not_by_more() -> None:
    assert close(1.0 + 1e-10, 1.0, 0.0)
    assert not close(1.0 + 1e-10, 1.0, None)
    assert close(3.0, 1.0, 2.0)
    assert not close(3.1, 1.0, 2.0)
    assert not close(math.inf, 1.0, 2.0)


# Workloads


@settings(SEEDED, max_examples=30)
@given(made=rows(max_rows=60), case=cases(max_rows=30, max_queries=5, cql=True))
def test_event_times_differ_and_batches_hold_every_row_once(made: Any, case: Case) -> None:
    times = [t for t in (record(made[0], row)["ts"] for row in made[1]) if t is not None]
    assert len(times) == len(set(times))
    assert [row for batch in case.batches for row in batch] == case.rows
    assert all(case.batches)
    assert sum(t.num_rows for t in case.tables) == case.table.num_rows


@settings(SEEDED, max_examples=20)
@given(case=cases(max_rows=60, max_queries=3))
def test_batches_that_are_never_late_give_the_rows_of_the_whole(case: Case) -> None:
    for query in case.queries:
        whole = {a.cells for a in map(_without_nan, case.naive(query))}
        cut = {a.cells for a in map(_without_nan, case.naive(query, delay=10**16))}
        assert whole == cut


def _without_nan(answer: Any) -> Any:
    cells = tuple(str(c) if isinstance(c, float) else c for c in answer.cells)
    return type(answer)(answer.window, cells, answer.slacks)


@settings(SEEDED, max_examples=20)
@given(made=rows(max_rows=20).flatmap(lambda made: batchings(made[1], empty=True)))
def test_batchings_may_have_empty_batches(made: list[list[Any]]) -> None:
    assert sum(map(len, made)) >= 1
