"""Post-aggregation expressions: small trees over calls, keys and the window."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Expression:
    """A node of a post-aggregation expression.

    Leaves: `call` (value: index into the query's calls), `key` (index into its keys), `window`, `window_start`,
    `window_end`, `literal` (value: its Spark SQL text). Everything else is an operation on `args`, `cast` with the
    Spark type name in `value`. `sql` is the node as Spark SQL, so that Spark itself can say which type it has.
    """

    op: str
    sql: str
    args: tuple[Expression, ...] = ()
    value: int | str | None = None

    def walk(self) -> Iterator[Expression]:
        yield self
        for arg in self.args:
            yield from arg.walk()
