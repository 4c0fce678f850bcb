"""How a projection fails: while it is bound, or on a row for which Spark itself would raise."""

from __future__ import annotations

from weft.model.errors import RunError


class CannotEvaluate(RunError):
    """An operation or a type that is not evaluated after aggregation; found when the query is registered."""


class EvaluationError(RunError):
    """A row for which the expression has no value, and for which Spark would raise too."""


def division_by_zero(sql: str) -> EvaluationError:
    return EvaluationError(
        f"{sql}: division by zero. Write nullif(divisor, 0) to get NULL for such rows, or turn "
        "spark.sql.ansi.enabled off."
    )


def overflow(sql: str, type_name: str, *, always: bool = False) -> EvaluationError:
    """`always`: Spark raises in both modes, so turning ANSI off would not help."""
    turn_off = "" if always else ", or turn spark.sql.ansi.enabled off"
    return EvaluationError(
        f"{sql}: overflow, the value does not fit {type_name}. Cast the operands to a wider type, such as double or a "
        f"decimal with more digits before the point{turn_off}."
    )


def malformed(sql: str, text: str, type_name: str) -> EvaluationError:
    return EvaluationError(
        f"{sql}: {text!r} is no {type_name}. Correct the text before it is aggregated, for instance with try_cast, or "
        "turn spark.sql.ansi.enabled off to get NULL."
    )
