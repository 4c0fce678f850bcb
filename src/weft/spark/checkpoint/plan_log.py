"""The plans of a run, one after another: each is written before the first batch that uses it.

    plans/00000007.json   the plan from batch 7 on: its queries, its trees, and what each query reads of former trees

A restart reads the newest and continues from it, with the same queries or others. Of earlier plans only a summary is
kept. The keys in a file are the format, the names in Python are not: the functions
`..._json` and `..._from` are the only places that know both.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from weft.aggregates import Component
from weft.engine import GroupingLayout, Layout, TreeLayout
from weft.engine.layout import FilterBit
from weft.engine.plan_transition import PlanPools, Reader
from weft.model import Edges, Ttl
from weft.plan import Plan
from weft.spark.checkpoint.files import CheckpointFiles, refuse_unknown_keys

PLANS_KEPT = 1000
"""Plans whose summaries are kept."""


@dataclass(frozen=True, slots=True)
class BackfillRecord:
    """A query that waits for the rows that came before it joined."""

    pool: int
    """The tree that their partials go to."""
    begin: int | None
    """Rows before it are left out; None: none are."""
    folder: str = ""
    """The folder of their partials; earlier versions had one per name."""


@dataclass(frozen=True, slots=True)
class PlanChange:
    """Why the plan changed, and what it cost before and after, in operations per second."""

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
    """The first batch that uses it."""
    texts: Mapping[str, str]
    """The text of each query: as plain Spark would run it, or as written if Spark has no syntax for it."""
    standing: PlanPools
    groupings: tuple[tuple[str, ...], ...]
    """The key expressions of each grouping, by its number."""
    joined: tuple[str, ...] = ()
    """Queries that joined while the job ran: a restart keeps them, also if they are not in its queries."""
    dropped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The texts of queries that left while the job ran, by name: a restart ignores them in its queries."""
    next_tree: int = 0
    """The next tree number since the checkpoint began; earlier versions did not write it."""
    changes_applied: int = 0
    """The number of changes that are part of the plan (see `change_log`)."""
    fresh: tuple[str, ...] = ()
    """Queries whose first batch this is."""
    ttls: Mapping[str, Ttl] = field(default_factory=dict)
    """The end of queries with a TTL."""
    pending_backfills: Mapping[str, BackfillRecord] = field(default_factory=dict)
    """Queries whose backfill is not complete."""
    completed_backfills: Mapping[str, BackfillRecord] = field(default_factory=dict)
    """Queries whose backfill this batch takes in."""
    changes: tuple[PlanChange, ...] = ()
    """What led from the plan before to this one, in order."""

    @property
    def cost(self) -> float | None:
        return self.changes[-1].cost_after if self.changes else None


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """What is kept of a plan after the next one is written."""

    batch: int
    changes: tuple[PlanChange, ...]
    queries: int
    trees: tuple[int, ...]
    """Numbers of the trees with state, also those of former plans."""
    older_trees: int
    """How many of them were of former plans."""


def write_plan(files: CheckpointFiles, record: PlanRecord) -> None:
    before = [name for name in plan_names(files) if f"plans/{name}" != _name(record.batch)]
    files.write_json(_name(record.batch), _plan_json(record))
    for name in before[-1:]:  # after the new one: a restart that finds no other still has it complete
        files.write_json(f"plans/{name}", _summary_json(read_summary(files, name)))
    for name in before[:-PLANS_KEPT]:
        files.delete(f"plans/{name}")


def plan_names(files: CheckpointFiles) -> list[str]:
    return [n for n in files.names("plans") if n.endswith(".json") and not n.startswith(".")]


def newest_plan(files: CheckpointFiles) -> PlanRecord | None:
    names = plan_names(files)
    return read_plan(files, names[-1]) if names else None


def plan_summaries(files: CheckpointFiles) -> list[PlanSummary]:
    return [read_summary(files, name) for name in plan_names(files)]


def plan_changes(files: CheckpointFiles) -> list[dict[str, Any]]:
    """Every change of the plan as users see it, in order."""
    return [
        {"batch": summary.batch, **_change_json(change), "older_trees": summary.older_trees}
        for summary in plan_summaries(files)
        for change in summary.changes
    ]


def read_summary(files: CheckpointFiles, name: str) -> PlanSummary:
    value = files.read_json(f"plans/{name}")
    if "current" not in value:
        trees = tuple(value["trees"])
        return PlanSummary(value["batch"], _changes_from(value), value["queries"], trees, value["older_trees"])
    trees = tuple(tree["number"] for part in ("current", "older") for tree in value[part])
    return PlanSummary(value["batch"], _changes_from(value), len(value["texts"]), trees, len(value["older"]))


def read_plan(files: CheckpointFiles, name: str) -> PlanRecord:
    return _plan_from(files.read_json(f"plans/{name}"))


def plan_record(batch: int, layout: Layout, next_tree: int = 0, **rest: Any) -> PlanRecord:
    next_tree = max(next_tree, 1 + max(tree.number for tree in layout.trees))
    return PlanRecord(
        batch=batch, standing=PlanPools.of(layout), fresh=tuple(sorted(layout.joining)), next_tree=next_tree, **rest
    )


def _name(batch: int) -> str:
    return f"plans/{batch:08d}.json"


def _plan_json(record: PlanRecord) -> dict[str, Any]:
    standing = record.standing
    return {
        "batch": record.batch,
        "changes": [_change_json(change) for change in record.changes],
        "texts": dict(record.texts),
        "live": list(record.joined),
        "dropped": {name: list(texts) for name, texts in record.dropped.items()},
        "given": record.next_tree,
        "asked": record.changes_applied,
        "fresh": list(record.fresh),
        "lives": {name: ttl_json(ttl) for name, ttl in record.ttls.items()},
        "held": {name: _backfill_json(backfill) for name, backfill in record.pending_backfills.items()},
        "arrived": {name: _backfill_json(backfill) for name, backfill in record.completed_backfills.items()},
        "groupings": [list(keys) for keys in record.groupings],
        "readers": {name: {"since": r.since, "pools": list(r.pools)} for name, r in standing.readers.items()},
        "current": [_tree_json(tree) for tree in standing.current],
        "older": [_tree_json(tree) for tree in standing.older],
    }


def _plan_from(value: Mapping[str, Any]) -> PlanRecord:
    """Earlier versions of this format wrote fewer keys; the defaults are what they meant."""
    readers = {name: Reader(r["since"], tuple(r["pools"])) for name, r in value["readers"].items()}
    current, older = (tuple(map(_tree_from, value[part])) for part in ("current", "older"))
    return PlanRecord(
        batch=value["batch"],
        texts=value["texts"],
        standing=PlanPools(current, older, readers),
        groupings=tuple(map(tuple, value["groupings"])),
        joined=tuple(value["live"]),
        dropped={n: (t,) if isinstance(t, str) else tuple(t) for n, t in value["dropped"].items()},
        next_tree=value.get("given", 0),
        changes_applied=value.get("asked", 0),
        fresh=tuple(value["fresh"]),
        ttls={name: ttl_from(ttl) for name, ttl in value.get("lives", {}).items()},
        pending_backfills={name: _backfill_from(backfill) for name, backfill in value.get("held", {}).items()},
        completed_backfills={name: _backfill_from(backfill) for name, backfill in value.get("arrived", {}).items()},
        changes=_changes_from(value),
    )


def _summary_json(summary: PlanSummary) -> dict[str, Any]:
    return {
        "batch": summary.batch,
        "changes": [_change_json(change) for change in summary.changes],
        "queries": summary.queries,
        "trees": list(summary.trees),
        "older_trees": summary.older_trees,
    }


def _change_json(change: PlanChange) -> dict[str, Any]:
    return {
        "reason": change.reason,
        "cost_before": change.cost_before,
        "cost_after": change.cost_after,
        "queries": change.queries,
        "trees": change.trees,
    }


def _changes_from(value: Mapping[str, Any]) -> tuple[PlanChange, ...]:
    if "changes" not in value:  # earlier versions wrote the reason alone
        return (PlanChange(value["reason"], None, None, len(value["texts"]), len(value["current"])),)
    for change in value["changes"]:
        refuse_unknown_keys(change, ("reason", "cost_before", "cost_after", "queries", "trees"), "a plan's change")
    return tuple(
        PlanChange(c["reason"], c["cost_before"], c["cost_after"], c["queries"], c["trees"]) for c in value["changes"]
    )


def _backfill_json(backfill: BackfillRecord) -> dict[str, Any]:
    return {"pool": backfill.pool, "begin": backfill.begin, "folder": backfill.folder}


def _backfill_from(value: Mapping[str, Any]) -> BackfillRecord:
    refuse_unknown_keys(value, ("pool", "begin", "folder"), "a backfill")
    return BackfillRecord(value["pool"], value["begin"], value.get("folder", ""))


def ttl_json(ttl: Ttl) -> dict[str, Any]:
    return {"length": ttl.length, "until": ttl.until}


def ttl_from(value: Mapping[str, Any]) -> Ttl:
    refuse_unknown_keys(value, ("length", "until"), "a query's TTL")
    return Ttl(length=value["length"], until=value["until"])


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


def _tree_from(value: Mapping[str, Any]) -> TreeLayout:
    keys = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(value["keys"])))
    return TreeLayout(
        number=value["number"],
        grouping=GroupingLayout(value["grouping"], tuple(keys)),
        edges=_edges(value["edges"]),
        begins=None if value["begins"] is None else _edges(value["begins"]),
        components=tuple(
            Component(kind, tuple(arguments), *setting) for kind, arguments, *setting in value["components"]
        ),
        filters={text: None if bit is None else FilterBit(*bit) for text, bit in value["filters"]},
        words=value["words"],
        queries=(),
        since=value["since"],
    )
