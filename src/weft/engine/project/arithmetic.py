"""Arithmetic as Spark does it: in double where the result is one; else exactly, then fitted to the result's type."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from weft.engine.project.casts import cast
from weft.engine.project.decimals import (
    LIMIT,
    Ints,
    Mask,
    both,
    divide,
    magnitude,
    quotient,
    rescale,
    times_power,
    valid_mask,
    wide,
)
from weft.engine.project.errors import division_by_zero
from weft.engine.project.expression import Typed
from weft.engine.project.numbers import Floats, combined, fit, floats, from_numpy, integers
from weft.engine.project.types import TypeKind, kind, scale

MICROSECONDS_PER_DAY = 86_400_000_000
DIVISIONS = frozenset({"div", "mod", "int_div"})


def arithmetic(node: Typed, args: list[pa.Array], ansi: bool) -> pa.Array:
    """`+ - * / % div` of two columns."""
    left, right = args
    if TypeKind.NULL in (kind(left.type), kind(right.type)):
        return pa.nulls(len(left), node.type)
    valid = both(valid_mask(left), valid_mask(right))
    if kind(node.type) is TypeKind.FLOAT:
        operands = [floats(cast(side, node.type, ansi=ansi, sql=node.sql)) for side in args]
        return _in_floats(node, operands[0], operands[1], valid, ansi)
    if kind(node.type) in (TypeKind.INTEGER, TypeKind.DECIMAL):
        return _exactly(node, left, right, valid, ansi)
    days = kind(node.type) is not TypeKind.DATE
    first, second = (_in_time(side, days) for side in args)
    total = combined(node.op, first, second, magnitude(first) + magnitude(second))
    return fit(total, valid, node.type, ansi=ansi, sql=node.sql, always=True)


def _in_time(array: pa.Array, microseconds: bool) -> Ints:
    values = integers(array)
    return values * MICROSECONDS_PER_DAY if microseconds and kind(array.type) is TypeKind.DATE else values


def _in_floats(node: Typed, left: Floats, right: Floats, valid: Mask | None, ansi: bool) -> pa.Array:
    if node.op in DIVISIONS:
        valid = _without_zeros(node, np.asarray(right == 0), valid, ansi)
    with np.errstate(all="ignore"):
        if node.op == "add":
            out = left + right
        elif node.op == "sub":
            out = left - right
        elif node.op == "mul":
            out = left * right
        else:
            out = left / right if node.op == "div" else np.fmod(left, right)
    return from_numpy(out, valid, node.type)


def _without_zeros(node: Typed, zero: Mask, valid: Mask | None, ansi: bool) -> Mask | None:
    """The rows that can be divided. NULL divided by zero is NULL, so only rows with both operands can raise."""
    if valid is not None:
        zero = zero & valid
    if not zero.any():
        return valid
    if ansi:
        raise division_by_zero(node.sql)
    return both(valid, ~zero)


def _exactly(node: Typed, left: pa.Array, right: pa.Array, valid: Mask | None, ansi: bool) -> pa.Array:
    x, y, x_scale, y_scale = integers(left), integers(right), scale(left.type), scale(right.type)
    to = scale(node.type)
    if node.op in DIVISIONS:
        zero = np.asarray(y == 0, dtype=np.bool_)
        valid = _without_zeros(node, zero, valid, ansi)
        y = np.where(zero, 1, y)
    if node.op == "div":
        out = divide(x, y, to - x_scale + y_scale)
    elif node.op == "mul":
        out = rescale(combined("mul", x, y, magnitude(x) * magnitude(y)), x_scale + y_scale, to)
    else:
        common = max(x_scale, y_scale)
        x, y = times_power(x, common - x_scale), times_power(y, common - y_scale)
        if node.op == "int_div":
            out = quotient(x, y, half_up=False)
        elif node.op == "mod":
            out = rescale(_remainder(x, y), common, to)
        else:
            out = rescale(combined(node.op, x, y, magnitude(x) + magnitude(y)), common, to)
    if node.op == "int_div" and TypeKind.DECIMAL in (kind(left.type), kind(right.type)):
        # Spark checks the quotient as a decimal, then takes its low 64 bits, in ANSI mode too.
        checked = fit(out, valid, pa.decimal128(38, 0), ansi=ansi, sql=node.sql)
        return fit(integers(checked), valid_mask(checked), node.type, ansi=False, sql=node.sql)
    return fit(out, valid, node.type, ansi=ansi, sql=node.sql)


def _remainder(x: Ints, y: Ints) -> Ints:
    """With the sign of `x`, as in Java."""
    if x.dtype == object or y.dtype == object or max(magnitude(x), magnitude(y)) >= LIMIT:
        x, y = wide(x), wide(y)
    left = np.abs(x) % np.abs(y)
    return np.where(x < 0, -left, left)


def signed(node: Typed, args: list[pa.Array], ansi: bool) -> pa.Array:
    """`-x` and `abs(x)`."""
    (array,) = args
    valid = valid_mask(array)
    if kind(node.type) is TypeKind.FLOAT:
        values = floats(array)
        return from_numpy(-values if node.op == "neg" else np.abs(values), valid, node.type)
    exact = integers(array)
    if magnitude(exact) >= LIMIT:
        exact = wide(exact)
    turned = -exact if node.op == "neg" else np.abs(exact)
    if kind(node.type) is TypeKind.DECIMAL and magnitude(exact) >= _EXACT_NEGATION:
        negated = np.ones(len(exact), np.bool_) if node.op == "neg" else np.asarray(exact < 0)
        turned = np.array([_to_34_digits(v) if n else v for v, n in zip(turned, negated, strict=True)], object)
        # Spark checks the value only when it stores it, and raises in both modes.
        return fit(turned, valid, node.type, ansi=ansi, sql=node.sql, always=True)
    return fit(turned, valid, node.type, ansi=ansi, sql=node.sql)


_EXACT_NEGATION = 10**34
"""Spark negates a decimal in Scala's default context of 34 digits, HALF_EVEN: longer ones lose their last digits."""


def _to_34_digits(value: int) -> int:
    drop = 10 ** max(len(str(abs(value))) - 34, 0)
    digits, rest = divmod(abs(value), drop)
    digits += 2 * rest > drop or (2 * rest == drop and digits % 2 == 1)
    return int(digits * drop if value > 0 else -digits * drop)
