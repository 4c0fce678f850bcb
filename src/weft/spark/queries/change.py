"""A change of the queries of a job: which leave, which join, and what those see of the past."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from weft.model import ACQ
from weft.spark.checkpoint.change_log import ChangeRecord, JoiningQuery
from weft.sql import parse

Joining = Literal["now", "state", "source", "instead"]
"""What a query sees that joins; `instead`: it goes on where another of its name has stopped."""


@dataclass(frozen=True, slots=True)
class Join:
    """How a query joins."""

    how: Joining
    begin: int | None = None
    """Of one that reads the source again: rows before it are not its own; None: all are."""


@dataclass(frozen=True, slots=True)
class QueryChange:
    """Queries that leave, then queries that join."""

    leaving: Mapping[str, str]
    """The text of each, by name."""
    joining: Sequence[ACQ]
    how: Mapping[str, Joining]
    """What those who join see of the past, by name."""
    begin: int | None = None
    """For those who read the source again."""

    @property
    def joins(self) -> dict[str, Join]:
        return {name: Join(how, self.begin) for name, how in self.how.items()}

    def record(self) -> ChangeRecord:
        joining = tuple(JoiningQuery(query.name, query.identity, query.ttl) for query in self.joining)
        return ChangeRecord(dict(self.leaving), joining, dict(self.how), self.begin)

    @classmethod
    def of(cls, record: ChangeRecord, event_time: str) -> QueryChange:
        joining = []
        for written in record.joining:
            (query,) = parse(written.text, event_time=event_time, name=written.name)
            joining.append(replace(query, ttl=written.ttl))
        return cls(record.leaving, joining, cast(Mapping[str, Joining], record.how), record.begin)
