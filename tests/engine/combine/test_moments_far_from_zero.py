"""Deviations of values far from zero: against exact fractions, weft is about as right as Spark."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pyarrow as pa

from weft.aggregates import KINDS
from weft.engine.combine.registry import combiner_of

EPOCH = 1_700_000_000_000
SLICES, ROWS = 60, 10


def spark_m2(values: list[float]) -> tuple[float, float, float]:
    """(n, mean, m2) as Spark updates them, row by row."""
    n, mean, m2 = 0.0, 0.0, 0.0
    for value in values:
        n += 1
        delta = value - mean
        step = delta / n
        mean += step
        m2 += delta * (delta - step)
    return n, mean, m2


def exact_m2(values: list[float]) -> Fraction:
    mean = Fraction(sum(map(int, values)), len(values))
    return sum(((Fraction(v) - mean) ** 2 for v in values), Fraction(0))


def weft_m2(values: list[float]) -> float:
    """Slices as Spark lifts them, combined into one window."""
    slices = [values[i : i + ROWS] for i in range(0, len(values), ROWS)]
    columns = zip(*((float(len(s)), sum(s) / len(s), spark_m2(s)[2]) for s in slices), strict=True)
    combiner = combiner_of(KINDS["moments_2"], tuple(pa.array(column) for column in columns))
    return float(combiner.combine(np.array([0]), np.array([SLICES]))[2][0].as_py())


def test_the_worst_deviation_of_epoch_milliseconds_is_not_further_from_the_truth_than_sparks() -> None:
    random.seed(1)
    for spread in (1_000, 60_000):
        errors = []
        for _ in range(20):
            values = [float(EPOCH + random.randrange(2 * spread)) for _ in range(SLICES * ROWS)]
            truth = exact_m2(values)
            errors.append([abs(Fraction(m2) / truth - 1) for m2 in (spark_m2(values)[2], weft_m2(values))])
        of_spark, of_weft = map(max, zip(*errors, strict=True))
        assert of_spark > 1e-9, "Spark itself is further from the truth than weft promises to be from Spark"
        assert of_weft <= of_spark
