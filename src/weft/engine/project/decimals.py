"""Exact decimals: Arrow's 128-bit values as numpy integers, as limbs that can be summed, and divided as Spark does.

A column of unscaled values is an int64 array where all of them, and all that is computed from them, fit 64 bits, and
an array of Python integers otherwise. Every function looks at the greatest magnitude first, so the result is exact
either way; slots of NULL rows hold zero, so they never force the slow path.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.engine.project.errors import overflow

Ints = npt.NDArray[Any]
"""int64, or object with Python integers."""
Mask = npt.NDArray[np.bool_]

LIMIT = 2**63
LOW_32 = np.int64(0xFFFFFFFF)
LOW_64 = 2**64 - 1


def valid_mask(array: pa.Array) -> Mask | None:
    """True where the array has a value; None if it has one everywhere."""
    if array.null_count == 0:
        return None
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)


def both(left: Mask | None, right: Mask | None) -> Mask | None:
    """Rows that are valid in both; None stands for all."""
    if left is None:
        return right
    return left if right is None else left & right


def magnitude(values: Ints) -> int:
    """The greatest absolute value, as a Python integer."""
    return max(-int(values.min()), int(values.max()), 0) if len(values) else 0


def wide(values: Ints) -> Ints:
    return values.astype(object)


def narrow(values: Ints) -> Ints:
    """The same values as int64, if all of them fit."""
    return values.astype(np.int64) if values.dtype == object and magnitude(values) < LIMIT else values


def _words(array: pa.Array) -> npt.NDArray[np.int64]:
    """The array's 128-bit values as rows of (low, high), zero where NULL."""
    rows = len(array)
    if rows == 0:
        return np.zeros((0, 2), np.int64)
    words = np.frombuffer(array.buffers()[1], np.int64, 2 * rows, 16 * array.offset).reshape(rows, 2)
    valid = valid_mask(array)
    return words if valid is None else np.where(valid[:, None], words, 0)


def unscaled(array: pa.Array) -> Ints:
    """The unscaled values of a decimal128 array, or the values of an integer array; zero where NULL."""
    if not pa.types.is_decimal(array.type):
        return np.asarray(array.fill_null(0).to_numpy(zero_copy_only=False)).astype(np.int64, copy=False)
    words = _words(array)
    low, high = words[:, 0], words[:, 1]
    if bool(np.all(high == low >> 63)):
        return low
    return (wide(high) << 64) + wide(low.astype(np.uint64))


def times_power(values: Ints, power: int) -> Ints:
    """`values * 10**power`."""
    if power == 0:
        return values
    factor = 10**power
    if values.dtype != object and max(magnitude(values), 1) * factor >= LIMIT:
        values = wide(values)
    return np.asarray(values * factor)


def quotient(above: Ints, below: Ints, *, half_up: bool) -> Ints:
    """`above / below`, ties away from zero, or truncated. `below` has no zero."""
    if above.dtype == object or below.dtype == object or max(magnitude(above), magnitude(below)) >= LIMIT // 2:
        above, below = wide(above), wide(below)
    size, by = np.abs(above), np.abs(below)
    out = size // by
    if half_up:
        rest = size - out * by
        out = out + (rest >= by - rest)  # the rest is at least half of `by`: away from zero
    return np.where((above < 0) != (below < 0), -out, out)


def shift_down(values: Ints, power: int) -> Ints:
    """`values / 10**power`, ties away from zero."""
    if power == 0:
        return values
    return narrow(quotient(values, _constant(10**power, len(values)), half_up=True))


def rescale(values: Ints, scale: int, to: int) -> Ints:
    """The same numbers at another scale, rounded HALF_UP where digits are lost."""
    return times_power(values, to - scale) if to >= scale else shift_down(values, scale - to)


def divide(above: Ints, below: Ints, power: int) -> Ints:
    """`above * 10**power / below`, ties away from zero. `below` has no zero."""
    if power < 0:
        return quotient(above, times_power(below, -power), half_up=True)
    if above.dtype != object and below.dtype != object and max(magnitude(above), magnitude(below)) < LIMIT:
        # Whole part and remainder separately: both may fit 64 bits where `above * 10**power` does not.
        size, by = np.abs(above), np.abs(below)
        whole_part = size // by
        rest = size - whole_part * by
        factor = 10**power
        if (magnitude(whole_part) + 1) * factor < LIMIT and magnitude(by) * factor < LIMIT // 2:
            out = whole_part * np.int64(factor) + quotient(rest * np.int64(factor), by, half_up=True)
            return np.where((above < 0) != (below < 0), -out, out)
    return narrow(quotient(times_power(above, power), below, half_up=True))


def _constant(value: int, rows: int) -> Ints:
    return np.full(rows, value, np.int64 if value < LIMIT else object)


def _fits(low: npt.NDArray[np.int64], high: npt.NDArray[np.int64], precision: int) -> Mask:
    """Which 128-bit values lie strictly between -10**precision and 10**precision."""
    bottom = low.view(np.uint64)
    top, least = 10**precision, -(10**precision)
    top_high, top_low = np.int64(top >> 64), np.uint64(top & LOW_64)
    least_high, least_low = np.int64(least >> 64), np.uint64(least & LOW_64)
    below = (high < top_high) | ((high == top_high) & (bottom < top_low))
    above = (high > least_high) | ((high == least_high) & (bottom > least_low))
    return np.asarray(below & above)


def _assemble(
    low: npt.NDArray[np.int64], high: npt.NDArray[np.int64], keep: Mask | None, type: pa.Decimal128Type
) -> pa.Array:
    words = np.empty((len(low), 2), np.int64)
    words[:, 0], words[:, 1] = low, high
    bitmap = None
    if keep is not None:
        words[~keep] = 0
        bitmap = pa.py_buffer(np.packbits(keep, bitorder="little").tobytes())
    return pa.Array.from_buffers(type, len(low), [bitmap, pa.py_buffer(words)])


def to_decimal(values: Ints, valid: Mask | None, type: pa.Decimal128Type) -> tuple[pa.Array, Mask]:
    """Unscaled values as an array of `type`, and which valid rows do not fit its precision; those are NULL in it."""
    if values.dtype == object:
        bound = 10**type.precision
        fits = np.asarray((values < bound) & (values > -bound), dtype=np.bool_)
        values = np.where(fits, values, 0)
        low = (values & LOW_64).astype(np.uint64).view(np.int64)
        high = (values >> 64).astype(np.int64)
    else:
        low, high = values, values >> 63
        fits = _fits(low, high, type.precision)
    return _keep(low, high, fits, valid, type)


def _keep(
    low: npt.NDArray[np.int64], high: npt.NDArray[np.int64], fits: Mask, valid: Mask | None, type: pa.Decimal128Type
) -> tuple[pa.Array, Mask]:
    lost = ~fits if valid is None else ~fits & valid
    keep = both(valid, None if fits.all() else fits)
    return _assemble(low, high, keep, type), lost


def limbs(array: pa.Array) -> list[npt.NDArray[np.int64]]:
    """The unscaled values in base 2**32, least limb first: three unsigned limbs and a signed one, zero where NULL.

    Each limb is below 2**32 in magnitude, so up to 2**31 values can be added limb by limb in int64.

    >>> [int(limb[0]) for limb in limbs(pa.array([-1], pa.decimal128(3, 0)))]
    [4294967295, 4294967295, 4294967295, -1]
    """
    low, high = _words(array).T
    return [low & LOW_32, (low >> 32) & LOW_32, high & LOW_32, high >> 32]


def from_limb_sums(
    limbs: list[npt.NDArray[np.int64]], valid: Mask | None, type: pa.Decimal128Type
) -> tuple[pa.Array, Mask]:
    """Sums of limbs as decimals of `type`, and which valid rows do not fit its precision; those are NULL in the array.

    >>> one = limbs(pa.array([-1], pa.decimal128(3, 0)))
    >>> array, lost = from_limb_sums([limb * 5 for limb in one], None, pa.decimal128(13, 0))
    >>> array[0].as_py(), bool(lost[0])
    (Decimal('-5'), False)
    """
    first, second, third, fourth = limbs
    second = second + (first >> 32)
    third = third + (second >> 32)
    fourth = fourth + (third >> 32)
    low = (first & LOW_32) | (second << 32)
    high = (third & LOW_32) | (fourth << 32)
    fits = _fits(low, high, type.precision) & (fourth == fourth.astype(np.int32))
    return _keep(low, high, fits, valid, type)


def divide_decimal(
    sum: pa.Array, count: npt.NDArray[np.int64], type: pa.Decimal128Type, *, ansi: bool = True, sql: str = "avg"
) -> pa.Array:
    """Spark's `avg` of decimals: `sum / count` rounded HALF_UP at the scale of `type`; NULL where `count` is zero.

    A mean that does not fit the precision of `type` raises in ANSI mode and is NULL otherwise, as in Spark.

    >>> divide_decimal(pa.array([-1], pa.decimal128(11, 0)), np.array([8]), pa.decimal128(5, 2))[0].as_py()
    Decimal('-0.13')
    """
    has_values = count != 0
    valid = both(valid_mask(sum), None if has_values.all() else has_values)
    means = divide(unscaled(sum), np.where(has_values, count, 1), type.scale - sum.type.scale)
    array, lost = to_decimal(means, valid, type)
    if ansi and lost.any():
        raise overflow(sql, f"decimal({type.precision},{type.scale})")
    return array
