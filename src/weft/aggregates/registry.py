"""The aggregates by SQL name: the components that each keeps, and how its answer is read from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from weft.aggregates.component import Component
from weft.model import Call

EVENT_TIME = "_weft_time"
"""The event time in microseconds, a column that the pipeline adds: what `first` and `last` are ordered by."""

Types = Mapping[str, str]
"""The Spark type of each argument, by its SQL text."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`components(call, types)` says what to keep; `lower` names the reading of it in `engine.lower`."""

    components: Callable[[Call, Types], tuple[Component, ...]]
    lower: str
    arity: tuple[int, int] = (1, 1)
    numbers: Callable[[Call], tuple[float, ...]] = lambda call: ()
    """What its reading must know of the call, such as the fractions of a percentile."""


def guarded(call: Call, argument: str) -> str:
    """`FILTER (WHERE c)` as an argument that is NULL where c does not hold: all of them skip NULL."""
    return argument if call.condition is None else f"(CASE WHEN {call.condition} THEN {argument} END)"


def _count(call: Call, types: Types) -> tuple[Component, ...]:
    if call.condition is None and not call.arguments:
        return (Component("rows"),)
    if len(call.arguments) <= 1:
        return (Component("count", (guarded(call, *(call.arguments or ("1",))),)),)
    every = " AND ".join(f"({a}) IS NOT NULL" for a in call.arguments)
    return (Component("count", (guarded(call, f"(CASE WHEN {every} THEN 1 END)"),)),)


def _count_if(call: Call, types: Types) -> tuple[Component, ...]:
    return (Component("count", (guarded(call, f"(CASE WHEN {call.arguments[0]} THEN 1 END)"),)),)


def _one(kind: str) -> Callable[[Call, Types], tuple[Component, ...]]:
    return lambda call, types: (Component(kind, (guarded(call, call.arguments[0]),)),)


def _avg(call: Call, types: Types) -> tuple[Component, ...]:
    """The sum and count that `sum` and `count` keep; only a sum of bigints may overflow where Spark's mean does not."""
    argument = guarded(call, call.arguments[0])
    total = f"CAST({argument} AS DOUBLE)" if types.get(call.arguments[0]) in ("bigint", "string") else argument
    return (Component("sum", (total,)), Component("count", (argument,)))


def _by(kind: str) -> Callable[[Call, Types], tuple[Component, ...]]:
    return lambda call, types: (Component(kind, (call.arguments[0], guarded(call, call.arguments[1]))),)


def _in_time(kind: str) -> Callable[[Call, Types], tuple[Component, ...]]:
    """`first` and `last` by event time: the ordering is NULL for the rows that do not count."""

    def components(call: Call, types: Types) -> tuple[Component, ...]:
        value = call.arguments[0]
        order = f"(CASE WHEN ({value}) IS NOT NULL THEN {EVENT_TIME} END)" if call.ignore_nulls else EVENT_TIME
        return (Component(kind, (value, guarded(call, order))),)

    return components


def _moments(order: int) -> Callable[[Call, Types], tuple[Component, ...]]:
    return lambda call, types: (
        Component(f"moments_{order}", (f"CAST({guarded(call, call.arguments[0])} AS DOUBLE)",)),
    )


def _comoments(call: Call, types: Types) -> tuple[Component, ...]:
    return (Component("comoments", tuple(f"CAST({guarded(call, a)} AS DOUBLE)" for a in call.arguments)),)


def _pairs(call: Call, types: Types) -> tuple[Component, ...]:
    """Pairs of numbers: a text that is none is no pair."""
    return _count(replace(call, arguments=tuple(f"CAST({a} AS DOUBLE)" for a in call.arguments)), types)


AGGREGATES: dict[str, Aggregate] = {
    "count": Aggregate(_count, "value", (1, 999)),
    "count_if": Aggregate(_count_if, "value"),
    "sum": Aggregate(_one("sum"), "value"),
    "avg": Aggregate(_avg, "mean"),
    "min": Aggregate(_one("min"), "value"),
    "max": Aggregate(_one("max"), "value"),
    "bool_and": Aggregate(_one("min"), "value"),
    "bool_or": Aggregate(_one("max"), "value"),
    "bit_and": Aggregate(_one("bit_and"), "value"),
    "bit_or": Aggregate(_one("bit_or"), "value"),
    "bit_xor": Aggregate(_one("bit_xor"), "value"),
    "max_by": Aggregate(_by("max_by"), "chosen", (2, 2)),
    "min_by": Aggregate(_by("min_by"), "chosen", (2, 2)),
    "first": Aggregate(_in_time("min_by"), "chosen", (1, 2)),
    "last": Aggregate(_in_time("max_by"), "chosen", (1, 2)),
    "var_pop": Aggregate(_moments(2), "var_pop"),
    "var_samp": Aggregate(_moments(2), "var_samp"),
    "stddev_pop": Aggregate(_moments(2), "stddev_pop"),
    "stddev_samp": Aggregate(_moments(2), "stddev_samp"),
    "skewness": Aggregate(_moments(3), "skewness"),
    "kurtosis": Aggregate(_moments(4), "kurtosis"),
    "covar_pop": Aggregate(_comoments, "covar_pop", (2, 2)),
    "covar_samp": Aggregate(_comoments, "covar_samp", (2, 2)),
    "corr": Aggregate(_comoments, "corr", (2, 2)),
    "regr_count": Aggregate(_pairs, "value", (2, 2)),
    **{
        f"regr_{what}": Aggregate(_comoments, f"regr_{what}", (2, 2))
        for what in ("avgx", "avgy", "sxx", "syy", "sxy", "slope", "intercept", "r2")
    },
}

BUILT_IN = frozenset(AGGREGATES)
"""What users' own aggregates cannot be named."""


def components(calls: Sequence[Call], types: Types) -> tuple[Component, ...]:
    """What these calls keep, each component once, in the order of first use."""
    return tuple(dict.fromkeys(c for call in calls for c in AGGREGATES[call.function].components(call, types)))
