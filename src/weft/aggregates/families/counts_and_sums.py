"""Counts, sums and means."""

from __future__ import annotations

import re
from dataclasses import replace

from weft.aggregates.aggregate import MANY, Aggregate, ArgumentTypes, Spelling, Types, guarded
from weft.aggregates.combining import IntegerSum, NumberSum, RowCount, SumOrNull
from weft.aggregates.component import Component
from weft.aggregates.kind import FOLD, Algebra, Kind, TableOperation, TableSlot
from weft.aggregates.lowering import Mean, Value
from weft.model import Call

_INVERTIBLE = FOLD | Algebra.INVERTIBLE
_HAS_VALUE = TableSlot(TableOperation.SUM, "({0}) IS NOT NULL", boolean=True)

_OVERFLOWED = "count({0}) > 0 AND sum({0}) IS NULL"
"""Without ANSI mode: whether a sum is NULL because it overflowed."""

LONGEST_SUMMED = 28
"""Digits of a decimal whose sum has ten digits more: it cannot overflow with fewer than ten billion rows."""

KINDS = (
    Kind(
        "rows", ("count(1)",), RowCount(), _INVERTIBLE, ("sum({0})",),
        row=("1L",), table=TableSlot(TableOperation.SUM, None),
    ),
    Kind(
        "count", ("count({0})",), IntegerSum(), _INVERTIBLE, ("sum({0})",),
        row=("CASE WHEN {0} IS NULL THEN 0L ELSE 1L END",), table=_HAS_VALUE,
    ),
    Kind(
        "sum", ("sum({0})",), NumberSum(), _INVERTIBLE, ("sum({0})",), row=("{0}",), table=TableSlot(TableOperation.SUM)
    ),
    Kind(
        "sum_or_null", ("sum({0})", _OVERFLOWED), SumOrNull(), merge=("sum({0})", f"bool_or({{1}}) OR ({_OVERFLOWED})")
    ),
)  # fmt: skip

ROWS = Component("rows")
"""The number of rows. Every feed has it, as its first component."""


def _count(call: Call, types: Types) -> tuple[Component, ...]:
    if call.condition is None and not call.arguments:
        return (ROWS,)
    if len(call.arguments) <= 1:
        return (Component("count", (guarded(call, *(call.arguments or ("1",))),)),)
    every = " AND ".join(f"({a}) IS NOT NULL" for a in call.arguments)
    return (Component("count", (guarded(call, f"(CASE WHEN {every} THEN 1 END)"),)),)


def _count_if(call: Call, types: Types) -> tuple[Component, ...]:
    """Texts are read as booleans, as Spark reads them in ANSI mode; without ANSI Spark itself refuses them."""
    condition = call.arguments[0]
    if types.get(condition, "").startswith("string"):
        condition = f"CAST({condition} AS BOOLEAN)"
    return (Component("count", (guarded(call, f"(CASE WHEN {condition} THEN 1 END)"),)),)


def _pairs(call: Call, types: Types) -> tuple[Component, ...]:
    """Counts pairs of numbers: texts that are no numbers do not count."""
    return _count(replace(call, arguments=tuple(f"CAST({a} AS DOUBLE)" for a in call.arguments)), types)


def _sum(call: Call, types: Types) -> tuple[Component, ...]:
    return (Component(_sum_kind(call, types), (guarded(call, call.arguments[0]),)),)


def _sum_kind(call: Call, types: Types) -> str:
    """Sums of wide decimals can overflow inside a slice; without ANSI mode the slice then says so."""
    digits = re.match(r"decimal\((\d+)", types.get(call.arguments[0], ""))
    wide = digits is not None and int(digits[1]) > LONGEST_SUMMED
    return "sum_or_null" if wide and isinstance(types, ArgumentTypes) and not types.ansi else "sum"


def _avg(call: Call, types: Types) -> tuple[Component, ...]:
    """The components of `sum` and `count`; bigints are added as doubles, because their sum may overflow."""
    argument = guarded(call, call.arguments[0])
    total = f"CAST({argument} AS DOUBLE)" if types.get(call.arguments[0]) in ("bigint", "string") else argument
    counted = total if types.get(call.arguments[0]) == "string" else argument  # text that is no number does not count
    return (Component(_sum_kind(call, types), (total,)), Component("count", (counted,)))


def _no_intervals(call: Call, types: Types) -> str | None:
    type_ = types.get(call.arguments[0], "")
    return f"weft does not average values of type {type_}" if type_.startswith("interval") else None


AGGREGATES = {
    "count": Aggregate(
        _count, Value(), (1, MANY), takes_void=True, spelling=Spelling(star=True, distinct="count_distinct")
    ),
    "count_if": Aggregate(_count_if, Value()),
    "sum": Aggregate(_sum, Value()),
    "avg": Aggregate(_avg, Mean(), refusal=_no_intervals, spelling=Spelling(aliases=("mean",))),
    "regr_count": Aggregate(_pairs, Value(), (2, 2)),
}
