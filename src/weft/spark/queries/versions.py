"""The plan that batches run by, and the plan of the next batch, where changes gather until a batch takes them up.

A query that joins sees its windows from `since` on, and an incomplete window is never answered as a complete one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from weft.engine import GroupingLayout, Layout, QueryLayout
from weft.engine.plan_transition import Reader, follow, reach_back
from weft.plan import Plan
from weft.spark.checkpoint.batch_log import BatchRecord
from weft.spark.checkpoint.plan_log import PlanChange, PlanRecord, plan_record
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.queries.backfills import BackfillUpdate
from weft.spark.queries.change import Join, JoinMode
from weft.spark.queries.membership import Membership, with_ttls


@dataclass(frozen=True, slots=True)
class NextPlan:
    """The plan of the next batch, and what changed since the last one."""

    plan: Plan
    version: int = 0
    """Grows with every change and with every better plan."""
    physical: PhysicalPlan | None = None
    """None: the active plan stays."""
    joining: Mapping[str, Join] = field(default_factory=dict)
    """Queries that are in no batch yet."""
    changes: tuple[PlanChange, ...] = ()

    def adopt(
        self,
        plan: Plan,
        physical: PhysicalPlan,
        reason: str,
        cost_before: float | None,
        joining: Mapping[str, Join] | None = None,
    ) -> NextPlan:
        """Another plan. A query that joined and left since the last batch does not join."""
        joins = {n: j for n, j in {**self.joining, **(joining or {})}.items() if n in plan.workload.by_name}
        changes = (*self.changes, PlanChange.to(plan, reason, cost_before))
        return NextPlan(plan, self.version + 1, physical, joins, changes)

    def tell(self, reason: str, bare: PhysicalPlan) -> NextPlan:
        """The plan stays, and the next batch records a reason; `bare` is the plan without what former plans left."""
        change = PlanChange.to(self.plan, reason, float(self.plan.cost))
        return replace(self, physical=self.physical or bare, changes=(*self.changes, change))

    def taken_up(self) -> NextPlan:
        return NextPlan(self.plan, self.version)


@dataclass(frozen=True, slots=True)
class ActivePlan:
    record: PlanRecord
    """What the checkpoint has of the plan."""
    bare: PhysicalPlan
    """The plan alone."""
    physical: PhysicalPlan
    """With what former plans left, and with backfills."""

    @classmethod
    def first(cls, plan: Plan, bare: PhysicalPlan, membership: Membership) -> ActivePlan:
        """The plan of a new job."""
        physical = bare.with_layout(with_ttls(bare.layout, membership.ttls))
        changes = (PlanChange.to(plan, "woven", None),)
        return cls(_record(0, plan, physical, membership, BackfillUpdate(), changes), bare, physical)

    @classmethod
    def restored(cls, record: PlanRecord, bare: PhysicalPlan) -> ActivePlan:
        """The plan of a restarted job; the next plan replaces it before a batch runs."""
        return cls(record, bare, bare.with_layout(with_ttls(bare.layout, record.ttls)))

    def going_on(self, batch: int) -> ActivePlan:
        """The same plan. Only its first batch has new queries or takes backfills in."""
        if batch <= self.record.batch or not self.physical.layout.fresh:
            return self
        layout = replace(self.physical.layout, fresh=frozenset())
        return replace(self, physical=replace(self.physical.with_layout(layout), replayed=()))

    def following(self, before: BatchRecord) -> int:
        """The first tree number that is free: no kept state uses it."""
        standing = self.record.standing
        known = (*(t.number for t in (*standing.current, *standing.older)), *before.newest)
        return max(self.record.next_tree, 1 + max(known))

    def succeeded(
        self,
        batch: int,
        before: BatchRecord,
        next_plan: NextPlan,
        bound: PhysicalPlan,
        membership: Membership,
        update: BackfillUpdate,
    ) -> ActivePlan:
        """The next plan, from this batch on."""
        joined = readers_of(bound.layout, next_plan.joining, self.physical.layout, before)
        joined |= update.readers(joined)
        mark, newest = before.watermark, before.newest
        after = replace(bound.layout, held=frozenset(update.pending), fresh=frozenset(update.completed))
        next_tree = self.following(before)
        layout = follow(
            self.record.standing, after, joined, first_unseen(before), mark, newest, update.pools, next_tree
        )
        changes = next_plan.changes
        if batch == self.record.batch:  # the batch is repeated: queries that joined with it join again
            again = {q.name for q in layout.queries} & set(self.record.fresh)
            layout = replace(layout, fresh=layout.fresh | again)
            changes = (*self.record.changes, *changes)
        physical = replace(bound.with_layout(with_ttls(layout, membership.ttls)), replayed=update.partials)
        return ActivePlan(
            _record(batch, next_plan.plan, physical, membership, update, changes, next_tree), bound, physical
        )


def first_unseen(before: BatchRecord) -> int | None:
    """The instant after every row seen so far; None: there was no row."""
    return None if before.max_event_time is None else before.max_event_time + 1


def readers_of(layout: Layout, joining: Mapping[str, Join], running: Layout, before: BatchRecord) -> dict[str, Reader]:
    """What queries that join with this layout see; `running` is the layout of the kept slices."""
    readers: dict[str, Reader] = {}
    for tree in layout.current:
        for query in tree.queries:
            if query.name in joining:
                kept = _reader_of(query, tree.grouping, joining[query.name].how, running, before)
                readers[query.name] = kept or Reader(first_unseen(before), ())
    return readers


def _reader_of(
    query: QueryLayout, grouping: GroupingLayout, how: JoinMode, running: Layout, before: BatchRecord
) -> Reader | None:
    """The kept slices that reach back furthest for this query, if it may read them and they fit."""
    if how in ("now", "source") or before.watermark is None:
        return None
    reader = reach_back(query, grouping, running, before.watermark, before.kept_from(running))
    if reader is None or how == "state":
        return reader
    # The former query of this name has answered what ended by the watermark.
    opened = query.first_open(before.watermark)
    return replace(reader, since=opened if reader.since is None else max(reader.since, opened))


def _record(
    batch: int,
    plan: Plan,
    physical: PhysicalPlan,
    membership: Membership,
    update: BackfillUpdate,
    changes: tuple[PlanChange, ...],
    next_tree: int = 0,
) -> PlanRecord:
    return plan_record(
        batch,
        physical.layout,
        texts={q.name: q.identity for q in plan.workload},
        groupings=physical.groupings,
        next_tree=next_tree,
        joined=membership.joined,
        dropped=membership.dropped,
        changes_applied=membership.changes,
        ttls=membership.ttls,
        pending_backfills=update.pending,
        completed_backfills=update.completed,
        changes=changes,
    )
