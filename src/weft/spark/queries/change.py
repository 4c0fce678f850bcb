"""A change of the queries of a job: which leave, which join, and what those see of the past."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from weft.model import ACQ
from weft.spark.checkpoint.change_log import ChangeRecord, JoiningQuery
from weft.sql import parse

JoinMode = Literal["now", "state", "source", "instead"]
"""What a query that joins sees; `instead`: it continues where a query of the same name stops."""


@dataclass(frozen=True, slots=True)
class Join:
    """How a query joins."""

    how: JoinMode
    begin: int | None = None
    """For a backfill: rows before it are left out; None: no row is."""


@dataclass(frozen=True, slots=True)
class QueryChange:
    """Queries that leave, then queries that join."""

    leaving: Mapping[str, str]
    """The text of each, by name."""
    joining: Sequence[ACQ]
    how: Mapping[str, JoinMode]
    """What each query that joins sees of earlier rows, by name."""
    begin: int | None = None
    """For backfills."""

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
        return cls(record.leaving, joining, cast(Mapping[str, JoinMode], record.how), record.begin)
