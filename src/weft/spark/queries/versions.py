"""The plan that batches run by, and the plan of the next batch, where changes gather until a batch takes them up.

A query that joins sees its windows from `since` on, and an incomplete window is never answered as a complete one.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from weft.engine import GroupingLayout, Layout, QueryLayout
from weft.engine.plan_transition import Reader, follow, furthest_reader
from weft.plan import Plan
from weft.spark.checkpoint.batch_log import BatchRecord
from weft.spark.checkpoint.change_log import delete_changes
from weft.spark.checkpoint.files import CheckpointFiles
from weft.spark.checkpoint.plan_log import BackfillRecord, PlanChange, PlanRecord, plan_record, write_plan
from weft.spark.logs import log_event
from weft.spark.physical.check import check_physical
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.physical.planner import Planner
from weft.spark.physical.statistics import Feeding, StreamStatistics
from weft.spark.queries.backfills import Backfills, BackfillUpdate
from weft.spark.queries.change import Join, JoinMode, QueryChange
from weft.spark.queries.membership import Membership, with_ttls
from weft.spark.queries.replanner import ReplanRequest, ReplanResult
from weft.spark.queries.validate import CannotChange

logger = logging.getLogger(__name__)


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

    def with_reason(self, reason: str, bare: PhysicalPlan) -> NextPlan:
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

    def continued(self, batch: int) -> ActivePlan:
        """The same plan. Only its first batch has new queries or takes backfills in."""
        if batch <= self.record.batch or not self.physical.layout.joining:
            return self
        layout = replace(self.physical.layout, joining=frozenset())
        return replace(self, physical=replace(self.physical.with_layout(layout), backfilled=()))

    def next_free_tree(self, before: BatchRecord) -> int:
        """The first tree number that is free: no kept state uses it."""
        standing = self.record.standing
        used = (*(t.number for t in (*standing.current, *standing.older)), *before.newest)
        return max(self.record.next_tree, 1 + max(used))

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
        after = replace(bound.layout, backfilling=frozenset(update.pending), joining=frozenset(update.completed))
        next_tree = self.next_free_tree(before)
        layout = follow(
            self.record.standing, after, joined, first_unread(before), mark, newest, update.pools, next_tree
        )
        changes = next_plan.changes
        if batch == self.record.batch:  # the batch is repeated: queries that joined with it join again
            again = {q.name for q in layout.queries} & set(self.record.fresh)
            layout = replace(layout, joining=layout.joining | again)
            changes = (*self.record.changes, *changes)
        physical = replace(bound.with_layout(with_ttls(layout, membership.ttls)), backfilled=update.partials)
        return ActivePlan(
            _record(batch, next_plan.plan, physical, membership, update, changes, next_tree), bound, physical
        )


class PlanVersions:
    """The active plan, the next plan, and the statistics that plans are made from. Its owner calls it under a lock."""

    def __init__(self, planner: Planner, statistics: StreamStatistics, active: ActivePlan, following: NextPlan) -> None:
        self.active = active
        self.next = following
        self.statistics = statistics
        self._planner = planner
        self._feeding = Feeding()

    @property
    def plan(self) -> Plan:
        """Of the next batch."""
        return self.next.plan

    @property
    def layout(self) -> Layout:
        """Of the next batch."""
        return (self.next.physical or self.active.physical).layout

    @property
    def groupings(self) -> tuple[tuple[str, ...], ...]:
        return self.active.record.groupings

    def amended(self, change: QueryChange) -> PhysicalPlan:
        """The plan of the next batch after a change."""
        leaving = list(change.leaving)
        return self._planner.amend(self.plan, change.joining, leaving, self.statistics, self.groupings)

    def adopt(self, physical: PhysicalPlan, reason: str, joining: Mapping[str, Join]) -> None:
        self.next = self.next.adopt(physical.logical, physical, reason, float(self.plan.cost), joining)

    def note(self, reason: str | None) -> None:
        """The plan stays, and the next batch records a reason."""
        if reason is not None:
            self.next = self.next.with_reason(reason, self.active.bare)

    def note_feeding(self, feeding: Feeding) -> None:
        """Batches may count groups again and then roll up groupings from other ones."""
        self.note(feeding.difference(self._feeding))
        self._feeding = feeding

    def request(self) -> ReplanRequest:
        bound = self.next.physical or self.active.bare
        return ReplanRequest(self.next.version, self.plan, self.groupings, bound.classes, self.statistics)

    def adopt_result(self, result: ReplanResult) -> None:
        """A better plan, or the same one at the cost that replanning found."""
        if result.plan is not None and result.physical is not None:
            cost = float(result.request.plan.cost)
            self.next = self.next.adopt(result.plan, result.physical, result.reason, cost)
        else:
            self.next = replace(self.next, plan=result.request.plan)

    def since(self, name: str) -> int | None:
        """The start of the first window that the query answers; None: it sees all rows."""
        reader = self.active.record.standing.readers.get(name)
        if reader is None or name in self.next.joining:
            raise CannotChange(f"no batch has taken up a query {name} yet")
        return reader.since

    def refine(self) -> PhysicalPlan:
        """The active plan, with partials made as the newest statistics say."""
        physical = self._planner.refine(self.active.physical, self.statistics)
        self.active = replace(self.active, physical=physical)
        return physical

    def take_up(
        self, store: CheckpointFiles, batch: int, before: BatchRecord, membership: Membership, backfills: Backfills
    ) -> None:
        """The next plan is the active one from this batch on, and the checkpoint has it."""
        completed = self._completed(batch, backfills)
        following, bound = self.next, self.next.physical
        if bound is None:
            self.active = self.active.continued(batch)
            return
        queries, free = following.plan.workload.by_name, self.active.next_free_tree(before)
        update = backfills.update(queries, following.joining, bound, before, completed, free)
        active = self.active.succeeded(batch, before, following, bound, membership, update)
        # What former plans left has joined the plan since the planner checked it.
        check_physical(active.physical)
        write_plan(store, active.record)
        delete_changes(store, membership.changes)
        self.active, self.next = active, following.taken_up()
        for change in following.changes:
            log_event(logger, "plan changes", batch=batch, **asdict(change))

    def _completed(self, batch: int, backfills: Backfills) -> dict[str, BackfillRecord]:
        """Backfills that are complete and join with this batch."""
        ready, record = backfills.take_completed(), self.active.record
        if ready:
            self.note(f"{', '.join(ready)} finished the backfill")
        if batch == record.batch:  # the batch is repeated
            ready |= backfills.completed_again(record.completed_backfills, self.plan.workload.by_name)
        return ready


def first_unread(before: BatchRecord) -> int | None:
    """The instant after every row read so far; None: there was no row."""
    return None if before.max_event_time is None else before.max_event_time + 1


def readers_of(layout: Layout, joining: Mapping[str, Join], running: Layout, before: BatchRecord) -> dict[str, Reader]:
    """What queries that join with this layout see; `running` is the layout of the kept slices."""
    readers: dict[str, Reader] = {}
    for tree in layout.current:
        for query in tree.queries:
            if query.name in joining:
                kept = _reader_of(query, tree.grouping, joining[query.name].how, running, before)
                readers[query.name] = kept or Reader(first_unread(before), ())
    return readers


def _reader_of(
    query: QueryLayout, grouping: GroupingLayout, how: JoinMode, running: Layout, before: BatchRecord
) -> Reader | None:
    """The kept slices that reach back furthest for this query, if it may read them and they fit."""
    if how in ("now", "source") or before.watermark is None:
        return None
    reader = furthest_reader(query, grouping, running, before.watermark, before.kept_from(running))
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
