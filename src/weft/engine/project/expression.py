"""A post-aggregation expression whose every node knows its Spark type, as Arrow has it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Typed:
    """`model.Expression` with types; `value` is a leaf's index, a literal's text or a cast's type name."""

    op: str
    type: pa.DataType
    args: tuple[Typed, ...] = ()
    value: int | str | None = None
    sql: str = ""
    old_java: bool = False
    """Whether the session's Java is older than 19: it reads a double as another decimal (see `java_text`)."""
