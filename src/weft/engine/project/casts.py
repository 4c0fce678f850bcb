"""Spark's casts between numbers, booleans, dates, timestamps and text; the session's time zone is UTC."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.engine.project.decimals import (
    both,
    quotient,
    rescale,
    times_power,
    valid_mask,
)
from weft.engine.project.errors import overflow
from weft.engine.project.numbers import as_floats, fit, floats, from_numpy, integers
from weft.engine.project.rounding import saturated, unscaled_half_up
from weft.engine.project.string_casts import from_text, to_text
from weft.engine.project.types import TypeKind, kind, scale, type_name

Cast = Callable[[pa.Array, pa.DataType, bool, str], pa.Array]


def castable(source: pa.DataType, target: pa.DataType) -> bool:
    return source == target or kind(source) is TypeKind.NULL or _find(source, target) is not None


def cast(array: pa.Array, target: pa.DataType, *, ansi: bool, sql: str) -> pa.Array:
    """`array` as `target`; a value that does not fit raises in ANSI mode, else it wraps or is NULL, as in Spark."""
    if array.type == target:
        return array
    if kind(array.type) is TypeKind.NULL:
        return pa.nulls(len(array), target)
    convert = _find(array.type, target)
    assert convert is not None, (array.type, target)
    return convert(array, target, ansi, sql)


def _find(source: pa.DataType, target: pa.DataType) -> Cast | None:
    pair = (kind(source), kind(target))
    if pair == (TypeKind.TIMESTAMP, TypeKind.INTEGER) and target != pa.int64():
        return None
    return _CASTS.get(pair)


def _exact(array: pa.Array, target: pa.DataType, ansi: bool, sql: str) -> pa.Array:
    """Between integers and decimals: to an integer truncates, to a decimal rounds HALF_UP."""
    values, digits = integers(array), scale(array.type)
    if kind(target) is TypeKind.DECIMAL:
        values = rescale(values, digits, target.scale)
    elif digits:
        values = quotient(values, times_power(np.ones(len(values), np.int64), digits), half_up=False)
    return fit(values, valid_mask(array), target, ansi=ansi, sql=sql)


def _exact_to_float(array: pa.Array, target: pa.DataType, ansi: bool, sql: str) -> pa.Array:
    width = target.to_pandas_dtype()
    return from_numpy(as_floats(integers(array), scale(array.type), width), valid_mask(array), target)


def _float_to_float(array: pa.Array, target: pa.DataType, ansi: bool, sql: str) -> pa.Array:
    with np.errstate(over="ignore"):
        return from_numpy(floats(array).astype(target.to_pandas_dtype()), valid_mask(array), target)


def _float_to_integer(array: pa.Array, target: pa.DataType, ansi: bool, sql: str) -> pa.Array:
    values, valid, width = floats(array), valid_mask(array), np.dtype(target.to_pandas_dtype())
    limits = np.iinfo(width)
    if ansi:
        inside = (np.floor(values) <= float(limits.max)) & (np.ceil(values) >= float(limits.min))
        if not (inside if valid is None else inside | ~valid).all():
            raise overflow(sql, type_name(target))
    # Java has no narrowing from a double to a byte or a short: both go through int, and wrap.
    through = saturated(values, np.dtype(np.int64 if width.itemsize == 8 else np.int32))
    return from_numpy(through.astype(width), valid, target)


def _float_to_decimal(array: pa.Array, target: pa.DataType, ansi: bool, sql: str) -> pa.Array:
    return float_to_decimal(array, target, ansi=ansi, sql=sql, old_java=False)


def float_to_decimal(array: pa.Array, target: pa.DataType, *, ansi: bool, sql: str, old_java: bool) -> pa.Array:
    """By the digits that Java prints for the double; a float becomes a double first."""
    values = floats(array).astype(np.float64)
    finite = np.isfinite(values)
    valid = both(valid_mask(array), None if finite.all() else finite)
    unscaled = unscaled_half_up(np.where(finite, values, 0.0), target.scale, old_java=old_java)
    return fit(unscaled, valid, target, ansi=ansi, sql=sql)


def _to_boolean(array: pa.Array, target: pa.DataType, ansi: bool, sql: str) -> pa.Array:
    values = floats(array) if kind(array.type) is TypeKind.FLOAT else integers(array)
    return from_numpy(np.asarray(values != 0, dtype=np.bool_), valid_mask(array), target)


def _from_boolean(array: pa.Array, target: pa.DataType, ansi: bool, sql: str) -> pa.Array:
    return cast(array.cast(pa.int8()), target, ansi=ansi, sql=sql)


def _date_to_timestamp(array: pa.Array, target: pa.DataType, ansi: bool, sql: str) -> pa.Array:
    return array.cast(pa.timestamp("us")).view(target)


def _timestamp_to_date(array: pa.Array, target: pa.DataType, ansi: bool, sql: str) -> pa.Array:
    return fit(integers(array) // 86_400_000_000, valid_mask(array), target, ansi=ansi, sql=sql)


def _timestamp_to_seconds(array: pa.Array, target: pa.DataType, ansi: bool, sql: str) -> pa.Array:
    values = integers(array)
    if kind(target) is TypeKind.FLOAT:
        return from_numpy((values / 1e6).astype(target.to_pandas_dtype()), valid_mask(array), target)
    return fit(values // 1_000_000, valid_mask(array), target, ansi=ansi, sql=sql)


def _relabel(array: pa.Array, target: pa.DataType, ansi: bool, sql: str) -> pa.Array:
    return array.view(target) if kind(target) is not TypeKind.STRING else pc.cast(array, target)


_CASTS: dict[tuple[TypeKind, TypeKind], Cast] = {
    **{(s, t): _exact for s in (TypeKind.INTEGER, TypeKind.DECIMAL) for t in (TypeKind.INTEGER, TypeKind.DECIMAL)},
    (TypeKind.INTEGER, TypeKind.FLOAT): _exact_to_float,
    (TypeKind.DECIMAL, TypeKind.FLOAT): _exact_to_float,
    (TypeKind.FLOAT, TypeKind.FLOAT): _float_to_float,
    (TypeKind.FLOAT, TypeKind.INTEGER): _float_to_integer,
    (TypeKind.FLOAT, TypeKind.DECIMAL): _float_to_decimal,
    **{(s, TypeKind.BOOLEAN): _to_boolean for s in (TypeKind.INTEGER, TypeKind.DECIMAL, TypeKind.FLOAT)},
    **{(TypeKind.BOOLEAN, t): _from_boolean for t in (TypeKind.INTEGER, TypeKind.DECIMAL, TypeKind.FLOAT)},
    **{(s, t): _relabel for s in (TypeKind.TIMESTAMP, TypeKind.NTZ) for t in (TypeKind.TIMESTAMP, TypeKind.NTZ)},
    **{(TypeKind.DATE, t): _date_to_timestamp for t in (TypeKind.TIMESTAMP, TypeKind.NTZ)},
    **{(s, TypeKind.DATE): _timestamp_to_date for s in (TypeKind.TIMESTAMP, TypeKind.NTZ)},
    **{(TypeKind.TIMESTAMP, t): _timestamp_to_seconds for t in (TypeKind.INTEGER, TypeKind.FLOAT)},
    **{
        (s, TypeKind.STRING): to_text
        for s in (TypeKind.BOOLEAN, TypeKind.INTEGER, TypeKind.DECIMAL, TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.NTZ)
    },
    **{(TypeKind.STRING, t): from_text for t in (TypeKind.BOOLEAN, TypeKind.INTEGER, TypeKind.DECIMAL, TypeKind.FLOAT)},
    (TypeKind.STRING, TypeKind.STRING): _relabel,
}
