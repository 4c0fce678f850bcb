"""Every kind of component obeys its algebra, and every aggregate read from combined partials is the naive one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import naive
from weft.aggregates import AGGREGATES, BUILT_IN_KINDS, KINDS, Algebra, components
from weft.engine.combine.registry import combiner_of, partial_from_spark
from weft.engine.final.lower import lower
from weft.model import Call

Rows = Sequence[tuple[Any, ...]]
"""The arguments of a slice's rows."""
Lift = tuple[Callable[[Rows], tuple[Any, ...]], tuple[pa.DataType, ...]]

LONG, DOUBLE = pa.int64(), pa.float64()


def values(rows: Rows) -> list[Any]:
    return [row[0] for row in rows if row[0] is not None]


def numbers(*functions: str) -> Callable[[Rows], tuple[Any, ...]]:
    """Aggregates of doubles; NULL where there are too few values."""

    def lifted(rows: Rows) -> tuple[Any, ...]:
        pairs = [tuple(map(float, row)) for row in rows if None not in row]
        left, right = [row[:1] for row in pairs], [row[1:] for row in pairs]
        over = {"left": left, "right": right, "pairs": pairs}
        return tuple(naive.aggregate(f, over[of]) if pairs else None for f, of in (name.split() for name in functions))

    return lambda rows: (sum(None not in row for row in rows), *lifted(rows))


def theta(rows: Rows) -> tuple[Any, ...]:
    sketch = datasketches.update_theta_sketch(9)
    for value in values(rows):
        sketch.update(value)
    return (sketch.compact().serialize(),)


def kll(sketch: Any, kept: list[Any], *serde: Any) -> bytes:
    for value in kept:
        sketch.update(value)
    return sketch.serialize(*serde)  # type: ignore[no-any-return]


def heavy(serde: Any, item: Callable[[Any], Any]) -> Callable[[Rows], tuple[Any, ...]]:
    def lifted(rows: Rows) -> tuple[Any, ...]:
        sketch = datasketches.frequent_items_sketch(6)
        for value in values(rows):
            sketch.update(item(value))
        nulls = sum(row[0] is None for row in rows)
        return (sketch.serialize(serde) + nulls.to_bytes(8, "big"),)  # as Spark writes it

    return lifted


def chosen(function: str) -> Callable[[Rows], tuple[Any, ...]]:
    extreme = function.removesuffix("_by")
    return lambda rows: (naive.aggregate(extreme, [row[1:] for row in rows]), naive.aggregate(function, rows))


def native(function: str) -> Callable[[Rows], tuple[Any, ...]]:
    return lambda rows: (naive.aggregate(function, [row[:1] for row in rows]),)


MOMENTS = ("avg left", "var_pop left", "skewness left", "kurtosis left")

LIFTS: dict[str, Lift] = {
    "rows": (lambda rows: (len(rows),), (LONG,)),
    "count": (lambda rows: (len(values(rows)),), (LONG,)),
    "sum": (native("sum"), (LONG,)),
    "sum_or_null": (lambda rows: (*native("sum")(rows), False), (pa.decimal128(38, 0), pa.bool_())),
    **{name: (native(name), (LONG,)) for name in ("max", "min", "bit_and", "bit_or", "bit_xor")},
    **{name: (chosen(name), (LONG, LONG)) for name in ("max_by", "min_by")},
    **{f"moments_{n}": (numbers(*MOMENTS[:n]), (LONG, *[DOUBLE] * n)) for n in (2, 3, 4)},
    "comoments": (
        numbers("avg left", "avg right", "covar_pop pairs", "var_pop left", "var_pop right"),
        (LONG, *[DOUBLE] * 5),
    ),
    "frequencies": (lambda rows: (values(rows),), (pa.list_(LONG),)),
    "distinct": (lambda rows: (list(dict.fromkeys(values(rows))),), (pa.list_(LONG),)),
    "sums": (
        lambda rows: ([{"item": x, "added": y} for x, y in rows if x is not None and y is not None],),
        (pa.list_(pa.struct([("item", LONG), ("added", LONG)])),),
    ),
    "theta": (theta, (pa.binary(),)),
    "kll_bigint": (
        lambda rows: (kll(datasketches.kll_items_sketch(200), values(rows), datasketches.PyLongsSerDe()),),
        (pa.binary(),),
    ),
    "kll_double": (
        lambda rows: (kll(datasketches.kll_doubles_sketch(200), list(map(float, values(rows)))), 0),
        (pa.binary(), LONG),
    ),
    "heavy_bigint": (heavy(datasketches.PyLongsSerDe(), int), (pa.binary(),)),
    "heavy_double": (heavy(datasketches.PyDoublesSerDe(), float), (pa.binary(),)),
    "heavy_string": (heavy(datasketches.PyStringsSerDe(), str), (pa.binary(),)),
}
"""What Spark's native aggregates of each kind give for the rows of a slice, and their types."""

NUMBER = st.one_of(st.none(), st.integers(-3, 3))
SLICES = st.lists(st.lists(st.tuples(NUMBER, NUMBER), max_size=5), min_size=3, max_size=3)


def partials(kind: str, slices: Sequence[Rows]) -> tuple[pa.Array, ...]:
    lift, types = LIFTS[kind]
    columns = zip(*map(lift, slices), strict=True)
    arrays = tuple(pa.array(column, type_) for column, type_ in zip(columns, types, strict=True))
    return partial_from_spark(KINDS[kind], arrays)


def combined(kind: str, columns: tuple[pa.Array, ...], *bounds: tuple[int, int]) -> tuple[pa.Array, ...]:
    lo, hi = (np.array(side, np.int64) for side in zip(*bounds, strict=True))
    return combiner_of(KINDS[kind], columns).combine(lo, hi)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool(one == other)


def test_every_kind_is_examined() -> None:
    assert LIFTS.keys() == BUILT_IN_KINDS


@pytest.mark.parametrize("kind", sorted(BUILT_IN_KINDS))
@settings(derandomize=True, deadline=None, database=None, max_examples=25)
@given(slices=SLICES)
def test_it_does_not_matter_which_partials_are_combined_first(kind: str, slices: list[Rows]) -> None:
    columns = partials(kind, slices)
    at_once = combined(kind, columns, (0, 3))
    older, newer = combined(kind, columns, (0, 2), (2, 3)), combined(kind, columns, (0, 1), (1, 3))
    for stepwise in (older, newer):
        result = combined(kind, stepwise, (0, 2))
        assert same([c.to_pylist() for c in result], [c.to_pylist() for c in at_once])
    if Algebra.COMMUTATIVE in KINDS[kind].algebra and Algebra.SELECTIVE not in KINDS[kind].algebra:
        turned = combined(kind, partials(kind, slices[::-1]), (0, 3))
        assert same([c.to_pylist() for c in turned], [c.to_pylist() for c in at_once])


SERVED = sorted(
    name
    for name in AGGREGATES.keys() & naive.AGGREGATES.keys()
    if not any(c.keeps_values for c in components([Call(name, ("x", "y"))], {}))
)


def rows_of(name: str, slices: Sequence[Rows]) -> list[Rows]:
    """The rows as the aggregate takes them: truth values, or a value and an ordering that no two rows share."""
    if name in ("bool_and", "bool_or", "count_if"):
        return [[(None if x is None else int(x > 0),) for x, _ in rows] for rows in slices]
    if name in ("first", "last", "max_by", "min_by"):
        nullable = name.endswith("_by")
        return [
            [(x, None if nullable and y is None else 10 * s + i) for i, (x, y) in enumerate(rows)]
            for s, rows in enumerate(slices)
        ]
    return [[row[: max(1, AGGREGATES[name].arity[0])] for row in rows] for rows in slices]


@pytest.mark.parametrize("name", SERVED)
@settings(derandomize=True, deadline=None, database=None, max_examples=25)
@given(slices=SLICES)
def test_answers_from_combined_partials_are_those_of_all_rows(name: str, slices: list[Rows]) -> None:
    taken = rows_of(name, slices)
    lifted = [[(x or None,) for (x,) in rows] for rows in taken] if name == "count_if" else taken
    parts = [
        combined(component.kind, partials(component.kind, lifted), (0, 3))
        for component in components([Call(name, ("x", "y")[: AGGREGATES[name].arity[0]])], {"x": "int", "y": "int"})
    ]
    (answer,) = lower(AGGREGATES[name].lower, parts, DOUBLE).to_pylist()
    expected = naive.aggregate(name, [row for rows in taken for row in rows])
    if answer is None or expected is None:
        assert answer is expected
    else:
        assert math.isclose(answer, float(expected), rel_tol=1e-9, abs_tol=1e-9)
