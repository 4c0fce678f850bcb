"""round, floor, ceil. Spark rounds a double as the decimal that it prints: 0.285 to 0.29; and a float as a double."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import pyarrow as pa

from weft.engine.project.decimals import Ints, Mask, narrow, quotient, rescale, times_power, valid_mask
from weft.engine.project.errors import overflow
from weft.engine.project.expression import Typed
from weft.engine.project.java_text import java_digits
from weft.engine.project.numbers import Floats, as_floats, fit, floats, from_numpy, integers
from weft.engine.project.types import TypeKind, kind, scale, type_name

_EXACT = Context(prec=800, rounding=ROUND_HALF_UP)
_FAR = 400
"""No number has digits that far from its point, so rounding further changes nothing."""


def unscaled_half_up(values: Floats, digits: int, *, old_java: bool = False) -> Ints:
    """Finite doubles times `10**digits`, rounded HALF_UP as the decimals that Java prints for them."""
    text = java_digits if old_java else str
    if 0 <= digits <= 22:
        with np.errstate(over="ignore", invalid="ignore"):
            size = np.abs(values) * 10.0**digits
            whole_part = np.floor(size)
            # The product and the printed decimal differ from the double by parts in 1e16: further than that from a
            # tie, all three round alike.
            doubtful = (size >= 2.0**52) | (np.abs(size - whole_part - 0.5) <= size * 1e-15)
            out: Ints = np.where(doubtful, 0, np.copysign(whole_part + (size - whole_part > 0.5), values)).astype(
                np.int64
            )
    else:
        doubtful = np.ones(len(values), np.bool_)
        out = np.zeros(len(values), np.int64)
    rows = np.flatnonzero(doubtful)
    if len(rows):
        exact = [
            int(Decimal(text(v)).scaleb(digits, _EXACT).to_integral_value(ROUND_HALF_UP)) for v in values[rows].tolist()
        ]
        out = out.astype(object)
        out[rows] = exact
    return narrow(out)


def rounded(node: Typed, array: pa.Array, digits: int, ansi: bool) -> pa.Array:
    """`round(x, digits)`; negative digits round to tens, hundreds and so on."""
    if kind(array.type) is TypeKind.NULL:
        return pa.nulls(len(array), node.type)
    valid = valid_mask(array)
    digits = max(-_FAR, min(digits, _FAR))
    if kind(node.type) is TypeKind.FLOAT:
        return from_numpy(_rounded_floats(floats(array), digits, node.old_java), valid, node.type)
    have = scale(array.type)
    keep = min(digits, have)
    values = rescale(rescale(integers(array), have, keep), keep, scale(node.type))
    # Spark checks a rounded decimal only when it stores it, and raises in both modes if it is too long.
    return fit(values, valid, node.type, ansi=ansi, sql=node.sql, always=kind(node.type) is TypeKind.DECIMAL)


def _rounded_floats(values: Floats, digits: int, old_java: bool) -> Floats:
    finite = np.isfinite(values)
    unscaled = unscaled_half_up(np.where(finite, values, 0).astype(np.float64), digits, old_java=old_java)
    out = as_floats(times_power(unscaled, max(-digits, 0)), max(digits, 0), values.dtype.type)
    return np.where(finite, out, values)


def floor_or_ceil(node: Typed, args: list[pa.Array], ansi: bool) -> pa.Array:
    """`floor(x)` and `ceil(x)`."""
    (array,) = args
    if kind(array.type) is TypeKind.NULL:
        return pa.nulls(len(array), node.type)
    valid = valid_mask(array)
    if kind(array.type) is TypeKind.FLOAT:
        return _floor_or_ceil_floats(node, floats(array), valid, ansi)
    digits = scale(array.type)
    values = integers(array)
    if digits:
        truncated = quotient(values, times_power(np.ones(len(values), np.int64), digits), half_up=False)
        rest = values - times_power(truncated, digits)
        step = -(rest < 0).astype(np.int64) if node.op == "floor" else (rest > 0).astype(np.int64)
        values = truncated + step
    return fit(values, valid, node.type, ansi=ansi, sql=node.sql)


def _floor_or_ceil_floats(node: Typed, values: Floats, valid: Mask | None, ansi: bool) -> pa.Array:
    integral = np.floor(values) if node.op == "floor" else np.ceil(values)
    outside = np.abs(integral) > 2.0**63
    if valid is not None:
        outside &= valid
    if ansi and outside.any():
        raise overflow(node.sql, type_name(node.type))
    return from_numpy(saturated(integral, np.dtype(np.int64)), valid, node.type)


def saturated(values: Floats, width: np.dtype[np.signedinteger]) -> Ints:
    """Java's narrowing: truncates; NaN becomes zero, and a value outside the range the nearest limit."""
    limits = np.iinfo(width)
    with np.errstate(invalid="ignore"):
        out: Ints = np.where(np.isnan(values), 0, values).astype(width)
    out = np.where(values >= float(limits.max), limits.max, out)
    return np.where(values <= float(limits.min), limits.min, out).astype(width)
