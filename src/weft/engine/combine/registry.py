"""Which code combines a component, by its kind and type; and how what Spark sends becomes a partial."""

from __future__ import annotations

import pyarrow as pa

from weft.aggregates import KINDS
from weft.engine.combine.numeric import (
    NOTHING_CHOSEN,
    Bits,
    Choices,
    DecimalSums,
    Extremes,
    FloatSums,
    Ranges,
    Rows,
    Serving,
    Sums,
    absorb_numbers,
    is_number,
)
from weft.engine.combine.value_lists import Synopses, absorb_synopsis


def ranges_of(kind: str, columns: tuple[pa.Array, ...], serving: Serving = NOTHING_CHOSEN) -> Ranges:
    """The partials of one component, ready to be combined."""
    if KINDS[kind].synopsis:
        return Synopses(columns, serving)
    if kind in ("rows", "count"):
        return Sums(columns, serving)
    if kind == "sum":
        type_ = columns[0].type
        if pa.types.is_decimal(type_):
            return DecimalSums(columns, serving)
        return (FloatSums if pa.types.is_floating(type_) else Sums)(columns, serving)
    if kind in ("max", "min") and is_number(columns[0].type):
        return Extremes(columns, serving, greatest=kind == "max")
    if kind in ("max", "max_by", "min", "min_by"):
        return Choices(columns, serving, greatest=kind.startswith("max"))
    return (Bits if kind.startswith("bit_") else Rows)(columns, serving, kind)


def absorb(kind: str, columns: tuple[pa.Array, ...]) -> tuple[pa.Array, ...]:
    """What Spark's native aggregates say of a slice, as a partial that combines."""
    return absorb_synopsis(kind, columns) if KINDS[kind].synopsis else absorb_numbers(kind, columns)
