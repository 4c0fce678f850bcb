"""What extraction gives: queries that weft accepts, and what it does not accept, with the place and the reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExtractedQuery:
    """A query as Spark SQL, and where it came from."""

    name: str
    sql: str
    file: str
    line: int
    event_time: str = "ts"
    source: str = "stream"
    notes: tuple[str, ...] = ()
    """What the script said besides, and the SQL does not."""


@dataclass(frozen=True, slots=True)
class Skipped:
    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Imported:
    found: tuple[ExtractedQuery, ...]
    skipped: tuple[Skipped, ...]


class CannotImport(Exception):
    """A piece of a script that cannot become SQL; `line` is where it stands."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line, self.reason = line, reason
