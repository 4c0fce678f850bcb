"""Files of queries that Spark answers: statements that end with `;`, with comments above them.

`-- known: <reason>` above a query says that weft does not give Spark's rows today, and why.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

KNOWN = "-- known:"


@dataclass(frozen=True)
class FileQuery:
    """A query by its place, such as `taxi_12`; `known` is why its rows differ from Spark's, or None."""

    name: str
    text: str
    known: str | None = None

    @property
    def spark_sql(self) -> str:
        return self.text

    @property
    def view(self) -> str:
        """What weft is given."""
        return f"CREATE VIEW {self.name} AS {self.text}"


def read_queries(file: Path) -> list[FileQuery]:
    """The queries of a file, named by their number in it."""
    statements = re.split(r";[ \t]*$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [_query(f"{file.stem}_{number}", s) for number, s in enumerate(statements, 1) if s.strip()]


def _query(name: str, statement: str) -> FileQuery:
    lines = statement.strip().splitlines()
    reasons = [line.removeprefix(KNOWN).strip() for line in lines if line.startswith(KNOWN)]
    text = "\n".join(line for line in lines if not line.startswith("--"))
    return FileQuery(name, text, reasons[0] if reasons else None)
