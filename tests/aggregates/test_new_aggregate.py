"""A new aggregate is one new file: what a module of `weft.aggregates.families` would hold is defined here, and runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import weft
from tests.support.compare import assert_same_rows, spark_answers
from weft.aggregates import AGGREGATES, KINDS, ROWS, Aggregate, Component, Kind, add_family
from weft.aggregates.aggregate import ALIASES, STAND_INS, Spelling, Types, guarded
from weft.aggregates.combining import NumberSum
from weft.aggregates.kind import TableOperation, TableSlot
from weft.aggregates.lowering import NanFormula
from weft.engine import CallLayout, FeedLayout, GroupingLayout, Layout, QueryLayout, State, TreeLayout, advance
from weft.engine.project import Typed
from weft.model import Call, Edges
from weft.spark.physical.plan import HashTables

# What the file would hold.

SUM_OF_SQUARES = Kind(
    "sum_of_squares",
    lift=("sum({0} * {0})",),
    combine=NumberSum(),
    merge=("sum({0})",),
    row=("{0} * {0}",),
    table=TableSlot(TableOperation.SUM, "({0}) * ({0})"),
)


def _components(call: Call, types: Types) -> tuple[Component, ...]:
    value = guarded(call, call.arguments[0])
    return Component("sum_of_squares", (value,)), Component("count", (value,))


def _root_mean_square(squares: Any, count: Any) -> Any:
    return np.sqrt(squares / count)


ROOT_MEAN_SQUARE = Aggregate(
    _components,
    NanFormula(_root_mean_square),
    spelling=Spelling(aliases=("rms",), stand_in="CAST(avg({0}) AS DOUBLE)"),
)


# What runs with it.


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    add_family([SUM_OF_SQUARES], {"root_mean_square": ROOT_MEAN_SQUARE})
    yield
    del KINDS["sum_of_squares"], AGGREGATES["root_mean_square"], ALIASES["rms"]
    del STAND_INS["root_mean_square"], STAND_INS["rms"]


WINDOW = "window(ts, '4 seconds', '2 seconds')"


def test_it_is_parsed_planned_and_answered_by_the_engine() -> None:
    (acq,) = weft.parse(f"SELECT rms(x) AS r FROM stream GROUP BY {WINDOW}")
    assert acq.calls == (Call("root_mean_square", ("x",)),)
    plan = weft.optimize([f"SELECT rms(x) AS r FROM stream GROUP BY {WINDOW}"])
    assert {served.operator for served in plan.trees[0].serving} == {"int_sum", "float_sum"}

    kept = (ROWS, *_components(acq.calls[0], {}))
    grouping, edges = GroupingLayout(0, ()), Edges.of([acq.window])
    time, double = pa.timestamp("us", "UTC"), pa.float64()
    query = QueryLayout(
        "q", acq.window, None, (CallLayout(ROOT_MEAN_SQUARE.lower, kept[1:], double),),
        (Typed("window_start", time), Typed("call", double, (), 0)), None,
        pa.schema([("start", time), ("r", double)]),
    )  # fmt: skip
    tree = TreeLayout(0, grouping, edges, kept[1:], {None: None}, 0, (query,))
    feed = FeedLayout(0, grouping, edges, (), (), kept, (("c0",), ("c1",), ("c2",)), (tree,))
    values = {0: [1.0, 2.0], 2: [3.0], 4: [4.0, 5.0]}
    partials = pa.table(
        {
            "feed": pa.array([0] * 3, pa.int32()),
            "slice": [t * 1_000_000 for t in values],
            "c0": [len(v) for v in values.values()],
            "c1": [sum(x * x for x in v) for v in values.values()],
            "c2": [len(v) for v in values.values()],
        }
    )
    step = advance(State(), partials, 8_000_000, Layout((feed,), ansi=True, time_type=time))
    windows = [values[0], values[0] + values[2], values[2] + values[4], values[4]]
    expected = [math.sqrt(sum(x * x for x in w) / len(w)) for w in windows]
    assert step.answers["q"].column("r").to_pylist() == pytest.approx(expected)


@pytest.mark.spark
@pytest.mark.parametrize("groupings", ["native", "lfta"])
def test_spark_lifts_it_merges_it_and_holds_it_in_tables(spark: Any, groupings: str) -> None:
    begin = datetime(2024, 3, 1, tzinfo=UTC)
    rows = 200
    table = pa.table(
        {
            "ts": pa.array([begin + timedelta(seconds=i * 0.4) for i in range(rows)], pa.timestamp("us", "UTC")),
            "k": ["abc"[i % 3] for i in range(rows)],
            "l": ["xy"[i % 2] for i in range(rows)],
            "x": [None if i % 7 == 0 else 1.0 + i % 11 for i in range(rows)],
        }
    )
    by = {"a": "k", "b": "l"}
    texts = {
        name: f"SELECT {key}, window.start AS start, {{0}} AS r, count(*) AS n FROM stream GROUP BY {key}, {WINDOW}"
        for name, key in by.items()
    }
    job = weft.weave(
        spark.createDataFrame(table),
        ";".join(f"CREATE VIEW {name} AS {text.format('rms(x)')}" for name, text in texts.items()),
        phantoms="always",
        groupings=groupings,
    )
    answers = {name: frame.toArrow() for name, frame in job.answers().items()}
    expected = weft.parse(";".join(text.format("sqrt(avg(x * x))") for text in texts.values()))
    oracle = spark_answers(spark, table, expected)
    for name, acq in zip(by, expected, strict=True):
        assert answers[name].num_rows > 50
        assert_same_rows(answers[name], oracle[acq.name], key=(0, 1), text=name)
    if groupings == "lfta":
        assert isinstance(job.physical.partials.means, HashTables)
