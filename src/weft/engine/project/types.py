"""Arrow types as Spark's families of types."""

from __future__ import annotations

from enum import Enum, auto

import pyarrow as pa


class TypeKind(Enum):
    NULL = auto()
    BOOLEAN = auto()
    INTEGER = auto()
    DECIMAL = auto()
    FLOAT = auto()
    STRING = auto()
    DATE = auto()
    TIMESTAMP = auto()
    NTZ = auto()
    DURATION = auto()
    OTHER = auto()


INTEGERS = {pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int", pa.int64(): "bigint"}
DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
"""Decimal digits that Spark reserves for an integer beside a decimal."""
_FIXED = {
    pa.null(): TypeKind.NULL,
    pa.bool_(): TypeKind.BOOLEAN,
    pa.float32(): TypeKind.FLOAT,
    pa.float64(): TypeKind.FLOAT,
    pa.string(): TypeKind.STRING,
    pa.large_string(): TypeKind.STRING,
    pa.date32(): TypeKind.DATE,
    pa.timestamp("us"): TypeKind.NTZ,
    pa.duration("us"): TypeKind.DURATION,
    **dict.fromkeys(INTEGERS, TypeKind.INTEGER),
}

EXACT = frozenset({TypeKind.INTEGER, TypeKind.DECIMAL})
NUMERIC = EXACT | {TypeKind.FLOAT}


def kind(type: pa.DataType) -> TypeKind:
    fixed_kind = _FIXED.get(type)
    if fixed_kind is not None:
        return fixed_kind
    if pa.types.is_decimal128(type):
        return TypeKind.DECIMAL
    if pa.types.is_timestamp(type) and type.unit == "us":
        return TypeKind.TIMESTAMP
    return TypeKind.OTHER


def scale(type: pa.DataType) -> int:
    """Digits after the point; none in an integer."""
    return int(type.scale) if pa.types.is_decimal128(type) else 0


def type_name(type: pa.DataType) -> str:
    """The type as Spark SQL spells it, where it has a short name."""
    if pa.types.is_decimal128(type):
        return f"decimal({type.precision},{type.scale})"
    if kind(type) in (TypeKind.TIMESTAMP, TypeKind.NTZ):
        return "timestamp" if type.tz else "timestamp_ntz"
    names = {pa.null(): "void", pa.bool_(): "boolean", pa.float32(): "float", pa.date32(): "date"}
    return INTEGERS.get(type) or names.get(type) or str(type)
