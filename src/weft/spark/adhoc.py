"""Ad-hoc queries: answered once, from the kept slices of a running job, without a Spark job."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from weft.engine import Layout, State
from weft.engine.final.adhoc import answer_once, find_source, why_not
from weft.model import ACQ, RunError, Workload
from weft.spark.checkpoint.batch_log import BatchRecord
from weft.spark.checkpoint.state_store import StateStore
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.physical.planner import Planner

CHANGED_MEANWHILE = 5
"""Attempts to read the state while batches merge it, before the query is refused."""


class CannotAsk(RunError):
    """An ad-hoc query that the kept slices cannot answer."""


class StateMoved(Exception):
    """A batch replaced a segment while it was read."""


def ask(planner: Planner, acq: ACQ, physical: PhysicalPlan, state_store: StateStore, record: BatchRecord) -> pa.Table:
    """Every window of the query whose slices are all kept and that the watermark of the record has passed."""
    if acq.ttl is not None:
        raise CannotAsk("an ad-hoc query is answered once and has no TTL; leave FOR and UNTIL out, or add it")
    watermark = record.open_watermark
    if watermark is None:
        raise CannotAsk("no slice is kept: " + ("the stream was drained" if record.drained else "no row has come yet"))
    acq = replace(acq, refresh="exact")  # it is answered once: there is nothing to refresh
    adhoc_plan = replace(planner, options=planner.options.without_lateness()).plan(Workload([acq]))
    (query,), keys = adhoc_plan.layout.queries, adhoc_plan.logical.feeds[0].keys
    layout = _as_written(physical.layout)
    groupings = dict(enumerate(physical.groupings))
    source = find_source(query, keys, layout, watermark, groupings, record.kept_from(layout))
    if source is None:
        reason = why_not(query, keys, layout.trees, groupings)
        raise CannotAsk(f"the kept slices cannot answer this: {reason}; add it, and it answers from then on")
    needed = replace(layout, feeds=(), older=tuple(t for t in layout.trees if t.number in source.reader.pools))
    return answer_once(_read(state_store, record, needed), query, source, layout, watermark)


def _as_written(layout: Layout) -> Layout:
    """The layout of the slices in the checkpoint: they are compacted in memory only."""
    older = tuple(replace(tree, begins=None) for tree in layout.older)
    return replace(layout.with_trees(lambda tree: replace(tree, begins=None)), older=older)


def _read(state_store: StateStore, record: BatchRecord, layout: Layout) -> State:
    """The state of all buckets as one."""
    stored: list[dict[int, pa.Table]] = []
    wanted = {tree.number for tree in layout.trees}
    for segments in record.segments.values():
        for segment in segments:
            if wanted & segment.parts.keys():
                try:
                    stored.append(state_store.read(segment, wanted))
                except FileNotFoundError as error:
                    raise StateMoved from error
    return State(record.watermark).with_tables(layout, stored)
