"""Queries as a `.sql` file that weft reads."""

from __future__ import annotations

from collections.abc import Iterable

from weft.sql.extract.columns import quoted
from weft.sql.extract.extracted import ExtractedQuery


def to_sql(queries: Iterable[ExtractedQuery]) -> str:
    """Each query with its name, and its place in the input as a comment.

    >>> sql = "SELECT count(*) FROM t GROUP BY window(ts, '1 s')"
    >>> counted = ExtractedQuery("n", sql, "a.py", 3, notes=("as it was",))
    >>> print(to_sql([counted]))
    -- a.py:3
    -- as it was
    CREATE VIEW n AS
    SELECT count(*) FROM t GROUP BY window(ts, '1 s');
    <BLANKLINE>
    """
    return "\n".join(_statement(one) for one in queries)


def _statement(one: ExtractedQuery) -> str:
    comments = [f"-- {line}" for line in (f"{one.file}:{one.line}", *one.notes)]
    name = ".".join(map(quoted, one.name.split(".")))
    return "\n".join([*comments, f"CREATE VIEW {name} AS", f"{one.sql};", ""])
