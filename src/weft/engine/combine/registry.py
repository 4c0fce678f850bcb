"""Chooses the code that combines a component, by its kind and by the type of its columns."""

from __future__ import annotations

import pyarrow as pa

from weft.aggregates import Kind
from weft.aggregates.combining import (
    Bitwise,
    ChosenBy,
    Compiled,
    Extreme,
    IntegerSum,
    NumberSum,
    SumOrNull,
    ValueList,
    Vector,
)
from weft.engine.combine.base import NOTHING_CHOSEN, Combiner, Serving
from weft.engine.combine.choices import Choices, Extremes, is_number
from weft.engine.combine.sums import DecimalSums, FloatSums, Sums, SumsOrNull
from weft.engine.combine.value_lists import ValueLists
from weft.engine.combine.value_sources import values_from_spark
from weft.engine.combine.vectors import Bits, Vectors, identity_for_null, vector_from_spark

Columns = tuple[pa.Array, ...]


def combiner_of(kind: Kind, columns: Columns, serving: Serving = NOTHING_CHOSEN, *, ansi: bool = True) -> Combiner:
    """The partials of one component, ready to be combined. With `ansi` a sum that leaves its type raises."""
    match kind.combine:
        case IntegerSum():
            return Sums(columns, serving, ansi=ansi)
        case NumberSum():
            return _sums(columns, serving, ansi)
        case SumOrNull():
            return SumsOrNull(columns, serving)
        case Extreme(greatest=greatest) if is_number(columns[0].type):
            return Extremes(columns, serving, greatest=greatest)
        case Extreme(greatest=greatest) | ChosenBy(greatest=greatest):
            return Choices(columns, serving, greatest=greatest)
        case Bitwise() as how:
            return Bits(columns, serving, how)
        case Vector() | Compiled() as how:
            return Vectors(columns, serving, how)
        case ValueList():
            return ValueLists(columns, serving)
    raise AssertionError(f"nothing combines {kind.combine}")


def _sums(columns: Columns, serving: Serving, ansi: bool) -> Combiner:
    type_ = columns[0].type
    if pa.types.is_decimal(type_):
        return DecimalSums(columns, serving)
    if pa.types.is_floating(type_):
        return FloatSums(columns, serving)
    # Spark refuses to wrap durations in either mode.
    return Sums(columns, serving, ansi=ansi or pa.types.is_temporal(type_))


def partial_from_spark(kind: Kind, columns: Columns) -> Columns:
    """The results of Spark's native aggregates for slices, as partials that combine."""
    match kind.combine:
        case ValueList(source=source):
            return values_from_spark(source, columns)
        case Vector() as how:
            return vector_from_spark(how, columns)
        case Compiled() as how:
            return identity_for_null(how, columns)
    return columns
