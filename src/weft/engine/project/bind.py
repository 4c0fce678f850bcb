"""Gives expressions their types, and refuses those that weft cannot evaluate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, tzinfo

import pyarrow as pa

from weft.engine.project.errors import CannotEvaluate
from weft.engine.project.expression import Typed
from weft.engine.project.literals import as_instant, parse_literal
from weft.engine.project.supported import RULES
from weft.engine.project.types import TypeKind, kind, type_name
from weft.model.expression import Expression


def bind(
    expression: Expression,
    type_of: Callable[[Expression], pa.DataType],
    zone: tzinfo = UTC,
    *,
    old_java: bool = False,
) -> Typed:
    """Give every node its type, and refuse what `evaluate` could not compute.

    Timestamps without an offset are read in the session's `zone`, and kept as instants.
    """
    node = Typed(
        expression.op,
        type_of(expression),
        tuple(bind(arg, type_of, zone, old_java=old_java) for arg in expression.args),
        expression.value,
        expression.sql,
        old_java,
    )
    if node.op in COMPARISONS:
        original_args, node = node.args, replace(node, args=_times_from_text(node, zone))
        for before, after in zip(original_args, node.args, strict=True):
            if before is not after:
                _check(replace(after, sql=node.sql))
    elif node.op == "literal":
        node = _in_zone(node, zone, node.sql)
    _check(node)
    return node


COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "null_safe_eq", "nullif"})


def digits(node: Typed) -> int:
    """The second argument of `round`, a constant."""
    if len(node.args) == 1:
        return 0
    argument, sign = node.args[1], 1
    if argument.op == "neg":
        argument, sign = argument.args[0], -1
    if argument.op != "literal":
        raise ValueError(f"{argument.sql} is not constant")
    return sign * int(parse_literal(argument.value, argument.type).as_py())


def _times_from_text(comparison: Typed, zone: tzinfo) -> tuple[Typed, ...]:
    """Spark compares a date or a timestamp with a string as dates or timestamps: `max(ts) > '2024-05-01'`.

    It compares a timestamp with a date as timestamps.
    """
    args = comparison.args
    times = {kind(a.type): a.type for a in args if kind(a.type) in (TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.NTZ)}
    if len(times) == 1:
        (target,), text = times.values(), TypeKind.STRING
    elif times.keys() == {TypeKind.DATE, TypeKind.TIMESTAMP}:
        target, text = times[TypeKind.TIMESTAMP], TypeKind.DATE
    else:
        return args
    return tuple(
        _in_zone(replace(a, type=target), zone, comparison.sql) if a.op == "literal" and kind(a.type) is text else a
        for a in args
    )


def _in_zone(node: Typed, zone: tzinfo, place: str) -> Typed:
    """A literal as an instant, if it is a timestamp; `place` is the text that a refusal names."""
    if kind(node.type) is not TypeKind.TIMESTAMP:
        return node
    _try(replace(node, sql=place), lambda: as_instant(node.value, zone))
    return replace(node, value=as_instant(node.value, zone))


def _check(node: Typed) -> None:
    rule = RULES.get(node.op)
    if rule is None:
        raise CannotEvaluate(
            f"{node.sql}: weft does not evaluate {node.op} on aggregates. Apply it inside the aggregate's argument, or "
            "to the answers."
        )
    if not rule.least <= len(node.args) <= rule.most:
        raise CannotEvaluate(
            f"{node.sql}: weft does not evaluate {node.op} of {len(node.args)} arguments on aggregates."
        )
    types = [arg.type for arg in node.args]
    if not rule.accepts(node.type, types):
        taken = ", ".join(type_name(t) for t in types) or "no arguments"
        raise CannotEvaluate(
            f"{node.sql}: weft does not evaluate {node.op} of {taken} giving {type_name(node.type)} on aggregates. "
            "Cast the operands to one numeric type, or apply it to the answers."
        )
    if node.op == "literal":
        _try(node, lambda: parse_literal(node.value, node.type))
    if node.op == "round":
        _try(node, lambda: digits(node))


def _try(node: Typed, read: Callable[[], object]) -> None:
    try:
        read()
    except (ValueError, TypeError, ArithmeticError, AttributeError, pa.ArrowException) as problem:
        raise CannotEvaluate(
            f"{node.sql}: weft cannot read {node.value or node.sql} as a constant of type {type_name(node.type)}. "
            "Write a plain literal."
        ) from problem
