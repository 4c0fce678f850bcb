"""The progress of a run: its last record, the metrics of its batches, and how users see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.plan import Plan
from weft.spark.checkpoint.batch_log import BatchRecord
from weft.spark.execution.metrics import BatchMetrics
from weft.spark.execution.refresh import refreshed
from weft.spark.execution.watermark import iso
from weft.spark.final.report import KeptTreeState
from weft.spark.physical.plan import PhysicalPlan

REMEMBERED = 1000
"""Batches whose metrics a run remembers."""

RECENT = 10
"""Batches that rates are taken over."""


@dataclass(frozen=True, slots=True)
class Progress:
    """One value, replaced after each batch, so that readers see a record together with its plan."""

    record: BatchRecord
    physical: PhysicalPlan
    batches: tuple[BatchMetrics, ...] = ()
    """The latest of this run, oldest first."""
    spent: Mapping[str, float] = field(default_factory=dict)
    """Seconds of each phase, from the start of this run."""

    def after(self, record: BatchRecord, physical: PhysicalPlan, batch: BatchMetrics) -> Progress:
        more = {phase: self.spent.get(phase, 0.0) + seconds for phase, seconds in batch.phases.items()}
        return Progress(record, physical, (*self.batches, batch)[-REMEMBERED:], {**self.spent, **more})

    @property
    def watermark(self) -> int | None:
        return self.record.open_watermark


def show_trees(progress: Progress) -> list[dict[str, Any]]:
    """Slices and partials are known from the first batch of this run on, and None before."""
    sizes = progress.record.kept_bytes()
    kept = progress.batches[-1].trees if progress.batches else {}
    empty = KeptTreeState(0, 0) if progress.batches else None
    return [
        {
            "tree": tree.number,
            "queries": [query.name for query in tree.queries],
            "slices": None if (state := kept.get(tree.number, empty)) is None else state.slices,
            "partials": None if state is None else state.partials,
            "state_bytes": sizes.get(tree.number, 0),
        }
        for tree in progress.physical.layout.trees
    ]


def show_passes(physical: PhysicalPlan) -> list[dict[str, Any]]:
    return [
        {
            "keys": list(feed.keys.values()),
            "filters": list(feed.signature.filters),
            "queries": [query.name for tree in feed.layout.trees for query in tree.queries],
            "phantom": None if table is None else sorted(table),
        }
        for feed, table in zip(physical.feeds, physical.fed_by, strict=True)
    ]


def show_metrics(
    progress: Progress, now: float, plan: Plan, plan_changes: int, waiting: Sequence[str], failed: Mapping[str, str]
) -> dict[str, Any]:
    """Counters of the record, rates over the latest batches, and how the queries stand; `now` in seconds."""
    mark, recent = progress.watermark, progress.batches[-RECENT:]
    record, schedule = progress.record, progress.record.schedule
    busy = sum(m.seconds for m in recent) or None
    return {
        "batch": None if record.is_initial else record.batch,
        "rows": record.rows,
        "rows_per_second": sum(m.rows for m in recent) / busy if busy else 0.0,
        "watermark": iso(mark),
        "lag_seconds": None if record.max_event_time is None else max(0.0, now - record.max_event_time / 1e6),
        "answers": sum(record.answers.values()),
        "answers_per_second": sum(m.answers for m in recent) / busy if busy else 0.0,
        "late": sum(record.late.values()),
        "bad": record.corrupt_records,
        "late_by_query": dict(record.late),
        "answers_by_query": dict(record.answers),
        "matched_by_query": dict(record.matched),
        "state_bytes_written": record.state_bytes,
        "synopsis_bytes": recent[-1].synopsis_bytes if recent else 0,
        "refreshes_by_query": refreshed(progress.physical.layout, schedule, mark),
        "refreshes": sum(schedule.refreshes.values()),
        "refreshes_per_second": sum(m.refreshes for m in recent) / busy if busy else 0.0,
        "refresh_runs": schedule.runs,
        "refresh_shared_runs": schedule.shared_runs,
        "waiting": list(waiting),
        "failed": dict(failed),
        "queries": len(plan.workload),
        "trees": len(plan.trees),
        "plan_changes": plan_changes,
        "seconds_by_phase": dict(progress.spent),
    }
