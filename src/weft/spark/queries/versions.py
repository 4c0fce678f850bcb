"""The plan that batches run by, and how the next one follows on it.

What a query sees that joins is its windows from `since` on, and nothing is ever passed off as a full window that is
not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from weft.engine import GroupingLayout, Layout, QueryLayout
from weft.engine.plan_transition import Reader, follow, reach_back
from weft.plan import Plan
from weft.spark.checkpoint.batch_log import BatchRecord
from weft.spark.checkpoint.plan_log import PlanChange, PlanRecord, plan_record
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.queries.backfills import Pasts
from weft.spark.queries.change import Join, Joining
from weft.spark.queries.membership import Membership, with_ttls
from weft.spark.queries.pending import NextPlan


@dataclass(frozen=True, slots=True)
class ActivePlan:
    record: PlanRecord
    """What is written down of the plan."""
    bare: PhysicalPlan
    """Of the plan alone."""
    physical: PhysicalPlan
    """With what former plans have left, and what is to come from the past."""

    @classmethod
    def first(cls, plan: Plan, bare: PhysicalPlan, members: Membership) -> ActivePlan:
        """Of a job that begins."""
        physical = bare.with_layout(with_ttls(bare.layout, members.ttls))
        changes = (PlanChange.to(plan, "woven", None),)
        return cls(_record(0, plan, physical, members, Pasts(), changes), bare, physical)

    @classmethod
    def resumed(cls, record: PlanRecord, bare: PhysicalPlan) -> ActivePlan:
        """Of a job that goes on; the next plan takes its place before a batch runs."""
        return cls(record, bare, bare.with_layout(with_ttls(bare.layout, record.lives)))

    def going_on(self, batch: int) -> ActivePlan:
        """Without another plan. Only in its first batch is somebody fresh, or some past taken in."""
        if batch <= self.record.batch or not self.physical.layout.fresh:
            return self
        layout = replace(self.physical.layout, fresh=frozenset())
        return replace(self, physical=replace(self.physical.with_layout(layout), replayed=()))

    def following(self, before: BatchRecord) -> int:
        """The first number that no tree has had of which something may still be kept."""
        standing = self.record.standing
        known = (*(t.number for t in (*standing.current, *standing.older)), *before.newest)
        return max(self.record.given, 1 + max(known))

    def succeeded(
        self,
        batch: int,
        before: BatchRecord,
        pending: NextPlan,
        bound: PhysicalPlan,
        members: Membership,
        pasts: Pasts,
    ) -> ActivePlan:
        """By the plan that this batch takes up."""
        joined = readers(bound.layout, pending.joining, self.physical.layout, before)
        joined |= pasts.readers(joined)
        mark, newest = before.watermark, before.newest
        after = replace(bound.layout, held=frozenset(pasts.held), fresh=frozenset(pasts.arrived))
        given = self.following(before)
        layout = follow(self.record.standing, after, joined, cut(before), mark, newest, pasts.pools, given)
        changes = pending.changes
        if batch == self.record.batch:  # the batch is repeated: those that joined with it do so again
            again = {q.name for q in layout.queries} & set(self.record.fresh)
            layout = replace(layout, fresh=layout.fresh | again)
            changes = (*self.record.changes, *changes)
        physical = replace(bound.with_layout(with_ttls(layout, members.ttls)), replayed=pasts.replayed)
        return ActivePlan(_record(batch, pending.plan, physical, members, pasts, changes, given), bound, physical)


def cut(before: BatchRecord) -> int | None:
    """The instant after every row seen so far; None: none has come."""
    return None if before.max_event_time is None else before.max_event_time + 1


def readers(layout: Layout, joining: Mapping[str, Join], running: Layout, before: BatchRecord) -> dict[str, Reader]:
    """What those who join with this layout see; `running` is what the kept slices are of."""
    found: dict[str, Reader] = {}
    for tree in layout.current:
        for query in tree.queries:
            if query.name in joining:
                past = _past(query, tree.grouping, joining[query.name].how, running, before)
                found[query.name] = past or Reader(cut(before), ())
    return found


def _past(
    query: QueryLayout, grouping: GroupingLayout, how: Joining, running: Layout, before: BatchRecord
) -> Reader | None:
    """The kept slices that reach furthest back for this query, if it reads some and some will do."""
    if how in ("now", "source") or before.watermark is None:
        return None
    reader = reach_back(query, grouping, running, before.watermark, before.kept_from(running))
    if reader is None or how == "state":
        return reader
    # What ended by the watermark was answered by the query that had this name before.
    opened = query.first_open(before.watermark)
    return replace(reader, since=opened if reader.since is None else max(reader.since, opened))


def _record(
    batch: int,
    plan: Plan,
    physical: PhysicalPlan,
    members: Membership,
    pasts: Pasts,
    changes: tuple[PlanChange, ...],
    given: int = 0,
) -> PlanRecord:
    return plan_record(
        batch,
        physical.layout,
        texts={q.name: q.identity for q in plan.workload},
        groupings=physical.groupings,
        given=given,
        live=members.live,
        dropped=members.dropped,
        asked=members.asked,
        lives=members.ttls,
        held=pasts.held,
        arrived=pasts.arrived,
        changes=changes,
    )
