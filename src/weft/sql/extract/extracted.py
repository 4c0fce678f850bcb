"""The result of an import: queries that weft accepts, and what it skips, with file, line and reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExtractedQuery:
    """A query as Spark SQL, and its place in the input."""

    name: str
    sql: str
    file: str
    line: int
    event_time: str = "ts"
    source: str = "stream"
    notes: tuple[str, ...] = ()
    """What the script says that the SQL cannot express."""


@dataclass(frozen=True, slots=True)
class Skipped:
    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Imported:
    queries: tuple[ExtractedQuery, ...]
    skipped: tuple[Skipped, ...]


class CannotImport(Exception):
    """A piece of a script that cannot become SQL, and its line."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line, self.reason = line, reason
