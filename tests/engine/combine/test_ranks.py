"""Ranks order values as Spark's ORDER BY does, whatever is nested in what."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.engine.combine.ranks import ranks

INNER = pa.struct([("x", pa.float64()), ("y", pa.list_(pa.string()))])
FLOATS = st.sampled_from([None, -math.inf, -1.5, -0.0, 0.0, 1.0, math.inf, math.nan])
TEXTS = st.sampled_from([None, "", "a", "A", "ä", "b"])
STRUCTS = st.none() | st.fixed_dictionaries({"x": FLOATS, "y": st.none() | st.lists(TEXTS, max_size=2)})


def compare(one: Any, other: Any) -> int:
    """Below, equal or above: the plain loop."""
    if one is None or other is None:
        return (one is not None) - (other is not None)
    if isinstance(one, dict):
        one, other = [one["x"], one["y"]], [other["x"], other["y"]]
    if isinstance(one, list):
        firsts = (compare(a, b) for a, b in zip(one, other))
        return next((order for order in firsts if order), (len(one) > len(other)) - (len(one) < len(other)))
    if isinstance(one, float) and (math.isnan(one) or math.isnan(other)):
        return math.isnan(one) - math.isnan(other)
    if isinstance(one, str):
        one, other = one.encode(), other.encode()
    return int(one > other) - int(one < other)


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (FLOATS, pa.float64()),
        (TEXTS, pa.string()),
        (STRUCTS, INNER),
        (st.none() | st.lists(FLOATS, max_size=3), pa.list_(pa.float64())),
        (st.none() | st.lists(STRUCTS, max_size=2), pa.list_(INNER)),
    ],
    ids=["floats", "texts", "structs", "arrays", "arrays of structs"],
)
def test_ranks_are_in_the_order_of_the_values(values: st.SearchStrategy[Any], type_: pa.DataType) -> None:
    @settings(derandomize=True, deadline=None, max_examples=60)
    @given(st.lists(values, max_size=8))
    def ordered(column: list[Any]) -> None:
        numbers = ranks(pa.array(column, type_))
        expected = [[compare(one, other) for other in column] for one in column]
        assert np.sign(numbers[:, None] - numbers[None, :]).tolist() == expected
        assert [rank == 0 for rank in numbers] == [value is None for value in column]

    ordered()


def test_a_slice_of_a_column_has_ranks_of_its_own() -> None:
    column = pa.array([[9], [1, 2], [1], None, [0]], pa.list_(pa.int64())).slice(1, 3)
    assert ranks(column).tolist() == [2, 1, 0]
