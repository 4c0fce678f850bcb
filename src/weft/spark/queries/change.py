"""Changes that were asked for and are in no plan yet: whoever asked was told yes, so a restart makes them.

    asked/00000003.json   the third change since the checkpoint began

A plan says how many changes it has taken in; those are deleted after it is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from weft.model import ACQ, Ttl
from weft.spark.checkpoint.files import CheckpointFiles
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


def write_asked(store: CheckpointFiles, number: int, asked: QueryChange) -> None:
    queries = [{"name": q.name, "text": q.identity, "life": q.ttl and asdict(q.ttl)} for q in asked.joining]
    told = {"leaving": dict(asked.leaving), "joining": queries, "how": dict(asked.how), "begin": asked.begin}
    store.write_json(_name(number), told)


def read_asked(store: CheckpointFiles, taken: int, event_time: str) -> dict[int, QueryChange]:
    """By number, all after those that a plan has taken in."""
    numbers = [int(name.removesuffix(".json")) for name in store.names("asked") if name[:8].isdigit()]
    return {number: _read(store, number, event_time) for number in sorted(numbers) if number > taken}


def forget_asked(store: CheckpointFiles, taken: int) -> None:
    for name in store.names("asked"):
        if name[:8].isdigit() and int(name.removesuffix(".json")) <= taken:
            store.delete(f"asked/{name}")


def _read(store: CheckpointFiles, number: int, event_time: str) -> QueryChange:
    found = store.read_json(_name(number))
    joining = []
    for told in found["joining"]:
        (query,) = parse(told["text"], event_time=event_time, name=told["name"])
        joining.append(replace(query, ttl=told["life"] and Ttl(**told["life"])))
    return QueryChange(found["leaving"], joining, found["how"], found["begin"])


def _name(number: int) -> str:
    return f"asked/{number:08d}.json"
