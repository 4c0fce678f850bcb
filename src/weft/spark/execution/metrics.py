"""The metrics of a batch: what it did, and where its time went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from weft.spark.execution.context import BatchContext, BatchOutcome
from weft.spark.final.report import BucketReport, KeptTreeState


@dataclass(frozen=True, slots=True)
class BatchMetrics:
    batch: int
    rows: int
    partials: int
    answers: int
    late: int
    state_bytes: int
    record_bytes: int
    watermark: int | None
    max_event_time: int | None
    seconds: float
    phases: Mapping[str, float]
    worker_memory: int
    trees: Mapping[int, KeptTreeState]
    """By tree; trees of former plans are included until no open window needs them."""
    selectivity: float = 1.0
    """The share of the rows that some query wants, on average over the passes."""
    refreshes: int = 0
    """Windows that queries with SLIDE AT MOST were answered for."""
    synopsis_bytes: int = 0
    """Bytes of the partials without a fixed size when windows were answered: values, or samples of them."""

    @classmethod
    def of(cls, context: BatchContext, outcome: BatchOutcome, seconds: float) -> BatchMetrics:
        """Of a batch that took `seconds`."""
        record, before, reports = outcome.record, context.before, outcome.reports
        return cls(
            batch=record.batch,
            rows=record.rows - before.rows,
            partials=context.input.partials,
            answers=sum(record.answers.values()) - sum(before.answers.values()),
            late=sum(record.late.values()) - sum(before.late.values()),
            state_bytes=record.state_bytes,
            record_bytes=outcome.record_bytes,
            watermark=record.watermark,
            max_event_time=record.max_event_time,
            seconds=seconds,
            phases={**_stages(context, seconds), **_slowest(reports)},
            worker_memory=sum(report.memory for report in reports),
            trees=_trees(reports),
            selectivity=context.input.selectivity,
            refreshes=outcome.refreshes,
            synopsis_bytes=sum(report.value_bytes for report in reports),
        )


def _stages(context: BatchContext, seconds: float) -> dict[str, float]:
    native = context.native_seconds
    return {} if native is None else {"native": native, "final": seconds - native}


def _slowest(reports: Iterable[BucketReport]) -> dict[str, float]:
    """By phase, the time of the slowest bucket."""
    slowest: dict[str, float] = {}
    for report in reports:
        for phase, seconds in report.seconds.items():
            slowest[f"bucket {phase}"] = max(seconds, slowest.get(f"bucket {phase}", 0.0))
    return slowest


def _trees(reports: Iterable[BucketReport]) -> dict[int, KeptTreeState]:
    trees: dict[int, KeptTreeState] = {}
    for report in reports:
        for tree, here in report.trees.items():
            others = trees.get(tree, KeptTreeState(0, 0))
            trees[tree] = KeptTreeState(max(here.slices, others.slices), here.partials + others.partials)
    return trees
