"""The plans of a run, one after another: each is written down before the first batch that runs by it.

    plans/00000007.json   the plan from batch 7 on: its queries, its trees, and what each query reads of former trees

A restart reads the newest, and goes on from it with the queries that it is given: the same ones, or others. Of those
before it only what is told of them stays.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from weft.aggregates import Component
from weft.engine import GroupingLayout, Layout, TreeLayout
from weft.engine.layout import FilterBit
from weft.engine.plan_transition import Reader, Standing
from weft.model import Edges, Ttl
from weft.plan import Plan
from weft.spark.checkpoint.files import CheckpointFiles
from weft.spark.queries.backfill import Held

PLANS_KEPT = 1000
"""Plans that stay to be told of."""


@dataclass(frozen=True, slots=True)
class PlanChange:
    """Why the plan changed, and what it cost before and after, in operations a second."""

    reason: str
    cost_before: float | None
    """None: there was no plan, or an earlier version of weft made it."""
    cost_after: float | None
    queries: int
    trees: int

    @classmethod
    def to(cls, plan: Plan, reason: str, cost_before: float | None) -> PlanChange:
        return cls(reason, cost_before, float(plan.cost), len(plan.workload), len(plan.trees))


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """A plan as the next one, or a restart, needs it."""

    batch: int
    """The first batch that runs by it."""
    texts: Mapping[str, str]
    """Each query as plain Spark would run it, or as it was written where Spark has no words for it."""
    standing: Standing
    groupings: tuple[tuple[str, ...], ...]
    """The key expressions of each grouping, by its number."""
    live: tuple[str, ...] = ()
    """Queries that joined while the job ran: a restart keeps them, though nobody gives them again."""
    dropped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What left while the job ran, by name: a restart leaves these texts out, though they are given again."""
    given: int = 0
    """Numbers that trees were given since the checkpoint began; earlier versions did not say."""
    asked: int = 0
    """Changes that it has taken in, of those that were asked for (see `asked`)."""
    fresh: tuple[str, ...] = ()
    """Queries whose first batch this is."""
    lives: Mapping[str, Ttl] = field(default_factory=dict)
    """Until when queries live that do not stay for ever."""
    held: Mapping[str, Held] = field(default_factory=dict)
    """Queries that wait for their past."""
    arrived: Mapping[str, Held] = field(default_factory=dict)
    """Queries whose past joins with this batch."""
    changes: tuple[PlanChange, ...] = ()
    """What led from the plan before to this one, in order."""

    @property
    def cost(self) -> float | None:
        return self.changes[-1].cost_after if self.changes else None


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """What is told of a plan."""

    batch: int
    changes: tuple[PlanChange, ...]
    queries: int
    trees: tuple[int, ...]
    """Numbers of the trees that there was state of, those of former plans too."""
    older_trees: int
    """How many of them were of former plans."""


def write_plan(store: CheckpointFiles, record: PlanRecord) -> None:
    before = [name for name in plan_names(store) if f"plans/{name}" != _name(record.batch)]
    store.write_json(
        _name(record.batch),
        {
            "batch": record.batch,
            "changes": [asdict(change) for change in record.changes],
            "texts": dict(record.texts),
            "live": list(record.live),
            "dropped": {name: list(texts) for name, texts in record.dropped.items()},
            "given": record.given,
            "asked": record.asked,
            "fresh": list(record.fresh),
            "lives": {name: asdict(ttl) for name, ttl in record.lives.items()},
            "held": {name: asdict(held) for name, held in record.held.items()},
            "arrived": {name: asdict(held) for name, held in record.arrived.items()},
            "groupings": [list(keys) for keys in record.groupings],
            "readers": {n: {"since": r.since, "pools": list(r.pools)} for n, r in record.standing.readers.items()},
            "current": [_tree_json(t) for t in record.standing.current],
            "older": [_tree_json(t) for t in record.standing.older],
        },
    )
    for name in before[-1:]:  # after the new one: a restart that finds no other still has it whole
        store.write_json(f"plans/{name}", asdict(read_note(store, name)))
    for name in before[:-PLANS_KEPT]:
        store.delete(f"plans/{name}")


def plan_names(store: CheckpointFiles) -> list[str]:
    return [n for n in store.names("plans") if n.endswith(".json") and not n.startswith(".")]


def newest_plan(store: CheckpointFiles) -> PlanRecord | None:
    names = plan_names(store)
    return read_plan(store, names[-1]) if names else None


def plan_notes(store: CheckpointFiles) -> list[PlanSummary]:
    return [read_note(store, name) for name in plan_names(store)]


def plan_changes(store: CheckpointFiles) -> list[dict[str, Any]]:
    """As they are told, in order."""
    return [
        {"batch": note.batch, **asdict(change), "older_trees": note.older_trees}
        for note in plan_notes(store)
        for change in note.changes
    ]


def read_note(store: CheckpointFiles, name: str) -> PlanSummary:
    found = store.read_json(f"plans/{name}")
    if "current" not in found:
        return PlanSummary(**{**found, "trees": tuple(found["trees"]), "changes": _changes_from(found)})
    trees = tuple(tree["number"] for part in ("current", "older") for tree in found[part])
    return PlanSummary(found["batch"], _changes_from(found), len(found["texts"]), trees, len(found["older"]))


def read_plan(store: CheckpointFiles, name: str) -> PlanRecord:
    found = store.read_json(f"plans/{name}")
    readers = {name: Reader(r["since"], tuple(r["pools"])) for name, r in found["readers"].items()}
    current, older = (tuple(map(_tree_from, found[part])) for part in ("current", "older"))
    return PlanRecord(
        batch=found["batch"],
        texts=found["texts"],
        standing=Standing(current, older, readers),
        groupings=tuple(map(tuple, found["groupings"])),
        live=tuple(found["live"]),
        dropped={n: (t,) if isinstance(t, str) else tuple(t) for n, t in found["dropped"].items()},
        given=found.get("given", 0),
        asked=found.get("asked", 0),
        fresh=tuple(found["fresh"]),
        lives={name: Ttl(**ttl) for name, ttl in found.get("lives", {}).items()},
        held={name: Held(**held) for name, held in found.get("held", {}).items()},
        arrived={name: Held(**held) for name, held in found.get("arrived", {}).items()},
        changes=_changes_from(found),
    )


def _changes_from(found: Mapping[str, Any]) -> tuple[PlanChange, ...]:
    if "changes" not in found:  # earlier versions wrote down the reason alone
        return (PlanChange(found["reason"], None, None, len(found["texts"]), len(found["current"])),)
    return tuple(PlanChange(**change) for change in found["changes"])


def plan_record(batch: int, layout: Layout, given: int = 0, **rest: Any) -> PlanRecord:
    given = max(given, 1 + max(tree.number for tree in layout.trees))
    return PlanRecord(batch=batch, standing=Standing.of(layout), fresh=tuple(sorted(layout.fresh)), given=given, **rest)


def _name(batch: int) -> str:
    return f"plans/{batch:08d}.json"


def _tree_json(tree: TreeLayout) -> dict[str, Any]:
    return {
        "number": tree.number,
        "grouping": tree.grouping.number,
        "keys": base64.b64encode(pa.schema(tree.grouping.keys).serialize()).decode(),
        "edges": [list(c) for c in tree.edges.classes],
        "begins": None if tree.begins is None else [list(c) for c in tree.begins.classes],
        "components": [[c.kind, list(c.arguments), c.setting] for c in tree.components],
        "filters": [[text, bit] for text, bit in tree.filters.items()],
        "words": tree.words,
        "since": tree.since,
    }


def _edges(classes: Sequence[Sequence[int]]) -> Edges:
    return Edges(tuple((slide, shift) for slide, shift in classes))


def _tree_from(found: Mapping[str, Any]) -> TreeLayout:
    keys = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(found["keys"])))
    return TreeLayout(
        number=found["number"],
        grouping=GroupingLayout(found["grouping"], tuple(keys)),
        edges=_edges(found["edges"]),
        begins=None if found["begins"] is None else _edges(found["begins"]),
        components=tuple(Component(kind, tuple(given), *setting) for kind, given, *setting in found["components"]),
        filters={text: None if bit is None else FilterBit(*bit) for text, bit in found["filters"]},
        words=found["words"],
        queries=(),
        since=found["since"],
    )
