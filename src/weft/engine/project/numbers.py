"""Columns of numbers between Arrow and numpy, and what Spark does with a value that does not fit its type."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.engine.project.decimals import Ints, Mask, magnitude, to_decimal, unscaled, wide
from weft.engine.project.errors import overflow
from weft.engine.project.types import TypeKind, kind, type_name

Floats = npt.NDArray[Any]


def integers(array: pa.Array) -> Ints:
    """Unscaled decimals, integers, days or microseconds; zero where NULL."""
    family = kind(array.type)
    if family is TypeKind.DATE:
        return unscaled(array.view(pa.int32()))
    if family in (TypeKind.TIMESTAMP, TypeKind.NTZ, TypeKind.DURATION):
        return unscaled(array.view(pa.int64()))
    return unscaled(array)


def floats(array: pa.Array) -> Floats:
    """The values of a float or double array without conversion; the value in a NULL slot is undefined."""
    return np.asarray((array if array.null_count == 0 else array.fill_null(0.0)).to_numpy(zero_copy_only=False))


def from_numpy(values: npt.NDArray[Any], valid: Mask | None, type: pa.DataType) -> pa.Array:
    return pa.array(values, type, mask=None if valid is None else ~valid, from_pandas=False)


def fit(values: Ints, valid: Mask | None, type: pa.DataType, *, ansi: bool, sql: str, always: bool = False) -> pa.Array:
    """Exact values as a column of `type`.

    A value that does not fit raises in ANSI mode; otherwise a decimal becomes NULL and an integer wraps, as in Spark.
    With `always` it raises in both modes.
    """
    if kind(type) is TypeKind.DECIMAL:
        array, lost = to_decimal(values, valid, type)
        if (ansi or always) and lost.any():
            raise overflow(sql, type_name(type), always=always)
        return array
    width: Any = np.dtype(np.int32) if kind(type) is TypeKind.DATE else np.dtype(np.int64)
    if kind(type) is TypeKind.INTEGER:
        width = np.dtype(type.to_pandas_dtype())
    if values.dtype == object or width.itemsize < 8:
        limits = np.iinfo(width)
        outside = np.asarray((values < limits.min) | (values > limits.max), dtype=np.bool_)
        if valid is not None:
            outside &= valid
        if (ansi or always) and outside.any():
            raise overflow(sql, type_name(type), always=always)
        if values.dtype == object:
            values = (values & (2**64 - 1)).astype(np.uint64).view(np.int64)
    return from_numpy(values.astype(width, copy=False), valid, pa.from_numpy_dtype(width)).view(type)


def combined(op: str, left: Ints, right: Ints, bound: int) -> Ints:
    """Add, subtract or multiply exactly; the magnitude of the result is at most `bound`."""
    if bound >= 2**63:
        left, right = wide(left), wide(right)
    if op == "add":
        return left + right
    return left - right if op == "sub" else left * right


def as_floats(values: Ints, digits: int, width: Any) -> Floats:
    """`values / 10**digits` as float or double, correctly rounded."""
    if digits == 0 and values.dtype != object:
        return values.astype(width)
    exact, powers = (2**53, 22) if width == np.float64 else (2**24, 10)
    if values.dtype != object and digits <= powers and magnitude(values) < exact:
        return np.asarray(values.astype(width) / width(10**digits))  # both exact, so this rounds once
    # Text reads to the nearest float of its width; a double in between would round twice.
    texts = pa.array([f"{int(v)}e-{digits}" for v in values], pa.string())
    return np.asarray(texts.cast(pa.from_numpy_dtype(width)).to_numpy())
