"""Queries in any form: SQL text, a list of texts, a `.sql` file, or parsed queries."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from weft.model import ACQ, SqlError, Workload
from weft.sql.parse import parse

Queries = str | Path | Iterable[str | ACQ]


class NoSuchFile(SqlError):
    """A `.sql` file that is not there."""


def read_queries(queries: Queries, event_time: str = "ts") -> Workload:
    """A workload; texts in a list are named q1, q2, ... by position, unless they have a name."""
    if isinstance(queries, Path) or (isinstance(queries, str) and queries.strip().endswith(".sql")):
        path = Path(queries)
        if not path.is_file():
            raise NoSuchFile(f"{path} is not a file; give a .sql file, SQL text, or a list of SQL texts")
        return Workload(parse(path.read_text(), event_time=event_time))
    if isinstance(queries, str):
        return Workload(parse(queries, event_time=event_time))
    parsed: list[ACQ] = []
    for i, query in enumerate(queries, 1):
        parsed.extend([query] if isinstance(query, ACQ) else parse(query, event_time=event_time, name=f"q{i}"))
    return Workload(parsed)
