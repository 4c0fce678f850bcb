"""Guards: an expression that may fail is evaluated only for rows that some query with it takes, as in plain Spark.

`sum(1 / k) ... WHERE k <> 0` never divides by zero, also if the query shares its pass with queries that take all rows.
Guards read the computed words of the feeds' signatures, so a filter is evaluated once, however much it guards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from weft.aggregates import components
from weft.model import ACQ
from weft.spark.physical.signature import Signature
from weft.sql.total import can_fail

Guards = Mapping[str, str]
"""The condition of each guarded expression, over signed rows. Other expressions are evaluated for every row."""


def argument_guards(queries: Sequence[ACQ], types: Mapping[str, str], signature: Signature) -> Guards:
    """For the arguments of the queries of one feed."""
    filters: dict[str, set[str | None]] = {}
    for query in queries:
        for component in components(query.calls, types):
            for argument in component.arguments:
                filters.setdefault(argument, set()).add(query.where)
    conditions = {argument: signature.passes_some(some) for argument, some in filters.items() if can_fail(argument)}
    return {argument: condition for argument, condition in conditions.items() if condition is not None}


def merged_guards(guards: Iterable[tuple[str, str | None]]) -> Guards:
    """Of (expression, condition) pairs: an expression that is needed in several places is evaluated for all of them.

    >>> dict(merged_guards([("1 / k", "a"), ("1 / k", "b"), ("1 / j", "a"), ("1 / j", None)]))
    {'1 / k': '(a) OR (b)'}
    """
    conditions: dict[str, dict[str | None, None]] = {}
    for expression, condition in guards:
        conditions.setdefault(expression, {})[condition] = None
    return {
        expression: either([condition for condition in some if condition is not None])
        for expression, some in conditions.items()
        if None not in some and can_fail(expression)
    }


def either(conditions: Sequence[str]) -> str:
    return conditions[0] if len(conditions) == 1 else " OR ".join(f"({condition})" for condition in conditions)


def where(condition: str | None, expression: str) -> str:
    """The expression for rows that meet the condition, NULL for others."""
    return expression if condition is None else f"(CASE WHEN {condition} THEN {expression} END)"
