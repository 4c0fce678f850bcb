"""Comparisons in Spark's order: NaN equals NaN and is greater than any other number, -0.0 equals 0.0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.engine.project.casts import cast
from weft.engine.project.decimals import Mask, both, times_power, valid_mask
from weft.engine.project.expression import Typed
from weft.engine.project.literals import parse_literal
from weft.engine.project.numbers import floats, from_numpy, integers
from weft.engine.project.types import DIGITS, TypeKind, kind, scale


def compare(node: Typed, args: list[pa.Array], ansi: bool) -> pa.Array:
    """`= <> < <= > >= <=>` of two columns, as booleans."""
    if TypeKind.NULL in (kind(args[0].type), kind(args[1].type)) and node.op != "null_safe_eq":
        return pa.nulls(len(args[0]), pa.bool_())
    left_valid, right_valid = valid_mask(args[0]), valid_mask(args[1])
    if node.op == "null_safe_eq":
        return _null_safe(node, args, left_valid, right_valid, ansi)
    left, right = _common(node, args, ansi)
    valid = both(left_valid, right_valid)
    # Operands that no longer fit the common decimal type have become NULL (they raise in ANSI mode).
    valid = both(valid, both(valid_mask(left), valid_mask(right)))
    return from_numpy(_OPERATORS[node.op](left, right), valid, pa.bool_())


def _null_safe(node: Typed, args: list[pa.Array], left: Mask | None, right: Mask | None, ansi: bool) -> pa.Array:
    here = np.ones(len(args[0]), np.bool_) if left is None else left
    there = np.ones(len(args[1]), np.bool_) if right is None else right
    if TypeKind.NULL in (kind(args[0].type), kind(args[1].type)):
        return from_numpy(~here & ~there, None, pa.bool_())
    first, second = _common(node, args, ansi)
    return from_numpy(np.where(here & there, equal(first, second), here == there), None, pa.bool_())


def _common(node: Typed, args: list[pa.Array], ansi: bool) -> tuple[pa.Array, pa.Array]:
    """Both operands in the type in which Spark compares them, or in exact numbers that compare alike."""
    left, right = args
    kinds = {kind(left.type), kind(right.type)}
    if left.type == right.type or kinds == {TypeKind.INTEGER}:
        return left, right
    if TypeKind.FLOAT in kinds:
        target = _common_float(left.type, right.type, ansi)
    elif TypeKind.DECIMAL in kinds:
        target = _common_decimal(node, left.type, right.type)
        if target is None:
            return left, right
    elif kinds == {TypeKind.DATE, TypeKind.TIMESTAMP}:
        target = left.type if kind(left.type) is TypeKind.TIMESTAMP else right.type
    else:
        target = right.type
    return tuple(cast(side, target, ansi=ansi, sql=node.sql) for side in args)


def _common_float(left: pa.DataType, right: pa.DataType, ansi: bool) -> pa.DataType:
    """In ANSI mode an integer beside a float makes both double, so that no digit is lost."""
    if pa.float64() in (left, right) or TypeKind.DECIMAL in (kind(left), kind(right)):
        return pa.float64()
    return pa.float64() if ansi and left != right else pa.float32()


def _common_decimal(node: Typed, left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """None if 38 digits hold both operands; otherwise the type to which Spark rounds them before it compares."""
    points = max(scale(left), scale(right))
    whole_digits = max(_whole_digits(a) for a in node.args)
    return None if whole_digits + points <= 38 else pa.decimal128(38, 38 - whole_digits)


def _whole_digits(node: Typed) -> int:
    if kind(node.type) is TypeKind.DECIMAL:
        return int(node.type.precision - node.type.scale)
    if node.op == "literal":
        return len(str(abs(parse_literal(node.value, node.type).as_py() or 0)))
    return DIGITS[node.type]


def _numpy(left: pa.Array, right: pa.Array) -> tuple[Any, Any]:
    family = kind(left.type)
    if family is TypeKind.FLOAT:
        return floats(left), floats(right)
    if family is TypeKind.BOOLEAN:
        return tuple(np.asarray(side.fill_null(False).to_numpy(zero_copy_only=False)) for side in (left, right))  # type: ignore[return-value]
    points = max(scale(left.type), scale(right.type))
    return tuple(times_power(integers(side), points - scale(side.type)) for side in (left, right))  # type: ignore[return-value]


def equal(left: pa.Array, right: pa.Array) -> Mask:
    """The result for NULL rows is undefined."""
    if kind(left.type) is TypeKind.STRING:
        return _strings(pc.equal(left, right))
    x, y = _numpy(left, right)
    same = np.asarray(x == y, dtype=np.bool_)
    return same | (np.isnan(x) & np.isnan(y)) if kind(left.type) is TypeKind.FLOAT else same


def less(left: pa.Array, right: pa.Array) -> Mask:
    """The result for NULL rows is undefined."""
    if kind(left.type) is TypeKind.STRING:
        return _strings(pc.less(left, right))
    x, y = _numpy(left, right)
    under = np.asarray(x < y, dtype=np.bool_)
    return under | (np.isnan(y) & ~np.isnan(x)) if kind(left.type) is TypeKind.FLOAT else under


def _strings(answer: pa.Array) -> Mask:
    return np.asarray(answer.fill_null(False).to_numpy(zero_copy_only=False), dtype=np.bool_)


_OPERATORS: dict[str, Callable[[pa.Array, pa.Array], Mask]] = {
    "eq": equal,
    "ne": lambda left, right: ~equal(left, right),
    "lt": less,
    "ge": lambda left, right: ~less(left, right),
    "gt": lambda left, right: less(right, left),
    "le": lambda left, right: ~less(right, left),
}


def extreme(node: Typed, args: list[pa.Array], ansi: bool) -> pa.Array:
    """`greatest` and `least`: NULLs are ignored, and of equal values the first is kept."""
    best, *others = (cast(side, node.type, ansi=ansi, sql=node.sql) for side in args)
    for other in others:
        better = less(best, other) if node.op == "greatest" else less(other, best)
        best_valid, other_valid = valid_mask(best), valid_mask(other)
        take = better if best_valid is None else better | ~best_valid
        best = pc.if_else(pa.array(take if other_valid is None else take & other_valid), other, best)
    return best
