"""Exact decimals against Python's own integers, and means against Spark."""

from __future__ import annotations

import random
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from weft.engine.project.decimals import divide_decimal, from_limb_sums, limbs, rescale, to_decimal, unscaled
from weft.engine.project.errors import EvaluationError

_WIDE = Context(prec=80)
EDGES = [0, 1, -1, 2**31, -(2**32), 2**63 - 1, -(2**63), 2**64, -(2**96), 10**38 - 1, 1 - 10**38, None]


def decimals(values: list[int | None], precision: int = 38, scale: int = 0) -> pa.Array:
    return pa.array(
        [None if v is None else Decimal(v).scaleb(-scale, _WIDE) for v in values], pa.decimal128(precision, scale)
    )


def half_up(above: int, below: int) -> int:
    size = (2 * abs(above) + abs(below)) // (2 * abs(below))
    return -size if (above < 0) != (below < 0) else size


def test_limbs_give_back_every_value_they_were_made_from() -> None:
    array = decimals(EDGES)
    valid = np.array([v is not None for v in EDGES])
    again, lost = from_limb_sums(limbs(array), valid, array.type)
    assert again.equals(array)
    assert not lost.any()


def test_limbs_of_a_slice_are_those_of_its_rows() -> None:
    array = decimals(EDGES)
    for limb, part in zip(limbs(array), limbs(array[3:7]), strict=True):
        assert limb[3:7].tolist() == part.tolist()


def test_summed_limbs_are_the_exact_sum() -> None:
    chance = random.Random(5)
    values: list[int | None] = [chance.randint(-(10**37), 10**37) for _ in range(500)]
    sums = [np.array([limb.sum()]) for limb in limbs(decimals(values))]
    exact = sum(v or 0 for v in values)
    array, lost = from_limb_sums(sums, None, pa.decimal128(38, 0))
    if abs(exact) < 10**38:
        assert int(array[0].as_py()) == exact
    else:
        assert lost[0]


def test_a_sum_beyond_the_precision_is_null_and_marked_and_a_null_row_is_not() -> None:
    parts = [limb * 20 for limb in limbs(decimals([10**37, -(10**37), 10**36, 10**37]))]
    array, lost = from_limb_sums(parts, np.array([True, True, True, False]), pa.decimal128(38, 0))
    assert array.to_pylist() == [None, None, Decimal(2 * 10**37), None]
    assert lost.tolist() == [True, True, False, False]


def test_a_sum_beyond_128_bits_is_marked_too() -> None:
    parts = [limb * 2**30 for limb in limbs(decimals([10**38 - 1, 5]))]
    array, lost = from_limb_sums(parts, None, pa.decimal128(38, 0))
    assert array.to_pylist() == [None, Decimal(5 * 2**30)]
    assert lost.tolist() == [True, False]


@pytest.mark.parametrize("values", [[5, -5, 15, 149, -150, 0], [10**37 + 5, -(10**37) - 5, 0, 3, -5, 49]])
def test_rescaling_rounds_ties_away_from_zero(values: list[int]) -> None:
    assert rescale(unscaled(decimals(list(values))), 3, 2).tolist() == [half_up(v, 10) for v in values]
    assert rescale(unscaled(decimals(list(values))), 3, 5).tolist() == [v * 100 for v in values]


def test_round_trip_of_unscaled_values() -> None:
    for part in (EDGES, EDGES[:7]):
        array = decimals(list(part))
        valid = np.array([v is not None for v in part])
        again, _ = to_decimal(unscaled(array), valid, array.type)
        assert again.equals(array)


@pytest.mark.parametrize(("size", "scale", "to"), [(10**6, 2, 6), (10**17, 2, 6), (10**20, 18, 22), (10**30, 10, 14)])
def test_means_are_exact_whatever_their_size(size: int, scale: int, to: int) -> None:
    chance = random.Random(size)
    sums = [chance.randint(-size, size) for _ in range(300)] + [5, -5, 15, -15]
    counts = [chance.choice([1, 2, 3, 7, 8, 16, 1000, 2**40]) for _ in range(300)] + [200000] * 4
    got = divide_decimal(decimals(list(sums), 38, scale), np.array(counts), pa.decimal128(38, to))
    expected = [half_up(a * 10 ** (to - scale), n) for a, n in zip(sums, counts, strict=True)]
    assert unscaled(got).tolist() == expected


def test_a_mean_of_nothing_is_null() -> None:
    got = divide_decimal(decimals([7, None, 3], 11, 1), np.array([0, 2, 3]), pa.decimal128(5, 5))
    assert got.to_pylist() == [None, None, Decimal("0.10000")]


def test_a_mean_too_large_for_its_type_raises_or_is_null() -> None:
    sums, counts = decimals([10**37, 5], 38, 18), np.array([1, 1])
    with pytest.raises(EvaluationError, match="does not fit decimal"):
        divide_decimal(sums, counts, pa.decimal128(38, 22))
    assert divide_decimal(sums, counts, pa.decimal128(38, 22), ansi=False)[0].as_py() is None


@pytest.mark.spark
@pytest.mark.parametrize(
    "type_name", ["decimal(10,2)", "decimal(5,0)", "decimal(18,6)", "decimal(38,18)", "decimal(38,2)"]
)
def test_means_are_those_of_spark(spark: Any, type_name: str) -> None:
    precision, scale = map(int, type_name[8:-1].split(","))
    chance = random.Random(type_name)
    top = min(10**precision, 10 ** (30 + min(scale, 4))) - 1
    groups = [[chance.randint(-top, top) for _ in range(chance.choice([1, 3, 7, 8]))] for _ in range(20)]
    groups += [[1] + [0] * 7, [-1] + [0] * 7, [1] + [0] * 63, [-1] + [0] * 31, [3] + [0] * 95_999, [-3] + [0] * 95_999]
    rows = [
        (g, Decimal(v).scaleb(-scale, _WIDE))
        for g, values in enumerate(groups)
        for v in values
        if v or len(values) < 99
    ]
    zeros = [(g, len(values) - 1) for g, values in enumerate(groups) if len(values) > 99]
    frame = spark.createDataFrame(rows, f"g int, v {type_name}")
    more = spark.createDataFrame(zeros, "g int, n int").selectExpr(
        "g", f"cast(0 as {type_name}) v", "explode(sequence(1, n))"
    )
    answers = frame.unionByName(more.select("g", "v")).groupBy("g").agg({"v": "avg"}).collect()
    result = pa.decimal128(min(precision + 4, 38), min(scale + 4, 38))
    sums = decimals([sum(values) for values in groups], 38, scale)
    got = divide_decimal(sums, np.array([len(values) for values in groups]), result)
    assert dict(enumerate(got.to_pylist())) == {row[0]: row[1] for row in answers}
