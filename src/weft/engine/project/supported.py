"""Which operations are evaluated, on which types: `bind` checks this before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from weft.engine.project.casts import castable
from weft.engine.project.types import EXACT, NUMERIC, TypeKind, kind

Types = Sequence[pa.DataType]
MANY = 10_000


@dataclass(frozen=True, slots=True)
class Rule:
    """Between `least` and `most` arguments of types that `accepts` takes, for a result of the given type."""

    least: int
    most: int
    accepts: Callable[[pa.DataType, Types], bool]


def _is(type: pa.DataType, *kinds: TypeKind) -> bool:
    return kind(type) in (*kinds, TypeKind.NULL)


def _numbers(types: Types, result: pa.DataType) -> bool:
    """Operands that Spark widens to the result's family: only exact numbers give an exact result."""
    allowed = {TypeKind.FLOAT: NUMERIC, TypeKind.DECIMAL: EXACT, TypeKind.INTEGER: {TypeKind.INTEGER}}.get(
        kind(result), frozenset()
    )
    return all(_is(t, *allowed) for t in types) and bool(allowed)


_TIMES = {
    ("add", TypeKind.TIMESTAMP): {(TypeKind.TIMESTAMP, TypeKind.DURATION), (TypeKind.DURATION, TypeKind.TIMESTAMP)},
    ("add", TypeKind.NTZ): {(TypeKind.NTZ, TypeKind.DURATION), (TypeKind.DURATION, TypeKind.NTZ)},
    ("add", TypeKind.DATE): {(TypeKind.DATE, TypeKind.INTEGER), (TypeKind.INTEGER, TypeKind.DATE)},
    ("add", TypeKind.DURATION): {(TypeKind.DURATION, TypeKind.DURATION)},
    ("sub", TypeKind.TIMESTAMP): {(TypeKind.TIMESTAMP, TypeKind.DURATION)},
    ("sub", TypeKind.NTZ): {(TypeKind.NTZ, TypeKind.DURATION)},
    ("sub", TypeKind.DATE): {(TypeKind.DATE, TypeKind.INTEGER)},
    ("sub", TypeKind.DURATION): {(k, k) for k in (TypeKind.DURATION, TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.NTZ)},
}


def _sum(op: str) -> Callable[[pa.DataType, Types], bool]:
    def accepts(result: pa.DataType, types: Types) -> bool:
        return _numbers(types, result) or (kind(types[0]), kind(types[1])) in _TIMES.get((op, kind(result)), ())

    return accepts


def _comparable(types: Types) -> bool:
    kinds = {kind(t) for t in types} - {TypeKind.NULL}
    return (
        kinds <= NUMERIC
        or kinds <= {TypeKind.DATE, TypeKind.TIMESTAMP}
        or (len(kinds) == 1 and TypeKind.OTHER not in kinds)
    )


def _converts(result: pa.DataType, types: Types) -> bool:
    """Spark brings these operands to the result's type without a cast in the text."""
    return all(t == result or kind(t) is TypeKind.NULL or castable(t, result) for t in types)


def _case(result: pa.DataType, types: Types) -> bool:
    pairs = len(types) // 2
    values = [*types[1 : 2 * pairs : 2], *types[2 * pairs :]]
    return all(_is(t, TypeKind.BOOLEAN) for t in types[: 2 * pairs : 2]) and _converts(result, values)


def _integral(result: pa.DataType, types: Types) -> bool:
    return (kind(result) is TypeKind.INTEGER and _is(types[0], *NUMERIC)) or _rounded(result, types)


def _rounded(result: pa.DataType, types: Types) -> bool:
    return kind(result) in NUMERIC and (kind(types[0]) in (kind(result), TypeKind.NULL))


_LEAF = Rule(0, 0, lambda result, types: True)
_ARITHMETIC = Rule(2, 2, lambda result, types: _numbers(types, result))
_COMPARE = Rule(2, 2, lambda result, types: _comparable(types))
_LOGIC = Rule(2, 2, lambda result, types: all(_is(t, TypeKind.BOOLEAN) for t in types))
_PRESENCE = Rule(1, 1, lambda result, types: True)
_SIGNED = Rule(1, 1, lambda result, types: types[0] == result and kind(result) in (*NUMERIC, TypeKind.DURATION))
_INTEGRAL = Rule(1, 1, _integral)
_REAL = Rule(1, 1, lambda result, types: result == pa.float64() and all(_is(t, *NUMERIC) for t in types))
_EXTREME = Rule(2, MANY, lambda result, types: _comparable([result]) and _converts(result, types))

RULES: dict[str, Rule] = {
    **dict.fromkeys(("call", "key", "window", "window_start", "window_end", "literal"), _LEAF),
    "add": Rule(2, 2, _sum("add")),
    "sub": Rule(2, 2, _sum("sub")),
    **dict.fromkeys(("mul", "div", "mod"), _ARITHMETIC),
    "int_div": Rule(2, 2, lambda result, types: result == pa.int64() and all(_is(t, *EXACT) for t in types)),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "null_safe_eq"), _COMPARE),
    **dict.fromkeys(("and", "or"), _LOGIC),
    "not": Rule(1, 1, lambda result, types: _is(types[0], TypeKind.BOOLEAN)),
    **dict.fromkeys(("is_null", "is_not_null"), _PRESENCE),
    "case": Rule(2, MANY, _case),
    "if": Rule(3, 3, _case),
    "coalesce": Rule(1, MANY, _converts),
    "nullif": Rule(2, 2, lambda result, types: _comparable(types) and _converts(result, types[:1])),
    **dict.fromkeys(("greatest", "least"), _EXTREME),
    **dict.fromkeys(("neg", "abs"), _SIGNED),
    "round": Rule(1, 2, _rounded),
    **dict.fromkeys(("floor", "ceil"), _INTEGRAL),
    **dict.fromkeys(("sqrt", "exp", "ln", "log10", "log2", "sign"), _REAL),
    "power": Rule(2, 2, _REAL.accepts),
    "cast": Rule(1, 1, lambda result, types: castable(types[0], result)),
}
