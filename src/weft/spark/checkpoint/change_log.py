"""Changes of the queries that are in no plan yet: they were accepted, so a restart applies them.

    asked/00000003.json   the third change since the checkpoint began

A plan says how many changes are part of it; these are deleted after it is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.model import Ttl
from weft.spark.checkpoint.files import CheckpointFiles
from weft.spark.checkpoint.plan_log import ttl_from, ttl_json


@dataclass(frozen=True, slots=True)
class JoiningQuery:
    """A query that joins, as text."""

    name: str
    text: str
    ttl: Ttl | None = None


@dataclass(frozen=True, slots=True)
class ChangeRecord:
    """Queries that leave, then queries that join."""

    leaving: Mapping[str, str] = field(default_factory=dict)
    """The text of each, by name."""
    joining: tuple[JoiningQuery, ...] = ()
    how: Mapping[str, str] = field(default_factory=dict)
    """What each joining query sees of earlier rows, by name."""
    begin: int | None = None
    """For backfills: rows before it are left out; None: no row is."""


def write_change(files: CheckpointFiles, number: int, change: ChangeRecord) -> None:
    files.write_json(_name(number), _to_json(change))


def read_changes(files: CheckpointFiles, applied: int) -> dict[int, ChangeRecord]:
    """By number, all changes after the `applied` first ones, which are in a plan."""
    numbers = [int(name.removesuffix(".json")) for name in files.names("asked") if name[:8].isdigit()]
    return {number: _from_json(files.read_json(_name(number))) for number in sorted(numbers) if number > applied}


def delete_changes(files: CheckpointFiles, applied: int) -> None:
    for name in files.names("asked"):
        if name[:8].isdigit() and int(name.removesuffix(".json")) <= applied:
            files.delete(f"asked/{name}")


def _to_json(change: ChangeRecord) -> dict[str, Any]:
    return {
        "leaving": dict(change.leaving),
        "joining": [{"name": q.name, "text": q.text, "life": q.ttl and ttl_json(q.ttl)} for q in change.joining],
        "how": dict(change.how),
        "begin": change.begin,
    }


def _from_json(value: Mapping[str, Any]) -> ChangeRecord:
    joining = (JoiningQuery(q["name"], q["text"], q["life"] and ttl_from(q["life"])) for q in value["joining"])
    return ChangeRecord(value["leaving"], tuple(joining), value["how"], value["begin"])


def _name(number: int) -> str:
    return f"asked/{number:08d}.json"
