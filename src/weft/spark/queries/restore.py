"""The queries that a restart continues with: those of the caller, changed as the checkpoint says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from weft.engine.plan_transition import restore_layout
from weft.model import ACQ, Workload
from weft.spark.checkpoint.plan_log import BackfillRecord, PlanRecord
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.physical.planner import Planner
from weft.spark.physical.statistics import StreamStatistics
from weft.spark.queries.change import Join, QueryChange
from weft.spark.queries.membership import Membership, joined_after, ttls_of, with_dropped, with_ttls
from weft.spark.queries.versions import ActivePlan, NextPlan, PlanVersions
from weft.sql import parse


@dataclass(frozen=True, slots=True)
class RestoredQueries:
    queries: Workload
    membership: Membership
    joining: Mapping[str, Join]
    """Queries that were not in the job when it stopped, or were about to join."""
    backfills: Mapping[str, BackfillRecord]
    """Backfills that continue."""
    reason: str

    @property
    def reads_slices(self) -> bool:
        """Whether queries that join read what the former plan has kept."""
        return any(join.how in ("state", "instead") for join in self.joining.values())


def restore_queries(
    record: PlanRecord, queries: Iterable[ACQ], changes: Mapping[int, QueryChange], event_time: str
) -> RestoredQueries:
    """The queries of the caller, without those that were dropped and with those that were added while the job ran, or
    were about to be when it stopped."""
    wanted = {q.name: q for q in queries if q.identity not in record.dropped.get(q.name, ())}
    for name in record.joined:
        if name not in wanted:
            (wanted[name],) = parse(record.texts[name], event_time=event_time, name=name)
    joined, dropped, joining = _apply_changes(record, wanted, changes.values())
    added = [name for name in wanted if name not in record.texts]
    changed = [
        name
        for name, query in wanted.items()
        if name in record.texts and (name in joining or record.texts[name] != query.identity)
    ]
    new = [*added, *changed]
    kept = {name: ttl for name, ttl in record.ttls.items() if name in wanted and name not in changed}
    ttls = {**ttls_of(wanted[name] for name in new), **kept}
    return RestoredQueries(
        queries=Workload(wanted.values()),
        membership=Membership(joined, dropped, ttls, max(changes, default=record.changes_applied)),
        joining={**{name: Join("now") for name in new}, **joining},
        backfills={
            name: backfill
            for name, backfill in record.pending_backfills.items()
            if name in wanted and name not in changed
        },
        reason=_reason(added, changed, [name for name in record.texts if name not in wanted]),
    )


def _apply_changes(
    record: PlanRecord, wanted: dict[str, ACQ], changes: Iterable[QueryChange]
) -> tuple[tuple[str, ...], Mapping[str, tuple[str, ...]], dict[str, Join]]:
    """Apply changes that are in no plan yet to `wanted`; returns the queries that joined, the texts of those that
    left, and how queries join."""
    joined, dropped = record.joined, record.dropped
    joining: dict[str, Join] = {}
    for change in changes:
        joined = joined_after(joined, change)
        # A query with another text by now is not the one that was to leave.
        gone = {name: q.identity for name, q in wanted.items() if change.leaving.get(name) == q.identity}
        dropped = with_dropped(dropped, gone)
        for name in gone:
            del wanted[name]
        for query in change.joining:
            if query.name not in wanted:
                wanted[query.name] = query
                joining[query.name] = change.joins[query.name]
    return joined, dropped, joining


def restore_plans(
    record: PlanRecord,
    restored: RestoredQueries,
    physical: PhysicalPlan,
    planner: Planner,
    statistics: StreamStatistics,
) -> PlanVersions:
    """The plan of the record, which the plan of the restored queries follows; `physical` is the plan of the caller."""
    bound = planner.plan(restored.queries, statistics, record.groupings)
    active = ActivePlan.restored(record, physical)
    if restored.reads_slices:
        active = replace(active, physical=former_plan(record, planner))
    following = NextPlan(physical.logical).adopt(bound.logical, bound, restored.reason, record.cost, restored.joining)
    return PlanVersions(planner, statistics, active, following)


def former_plan(record: PlanRecord, planner: Planner) -> PhysicalPlan:
    """The queries of a former plan over its trees, which the kept slices belong to."""
    texts = record.texts.items()
    queries = [parse(text, event_time=planner.options.event_time, name=name)[0] for name, text in texts]
    physical = planner.plan(Workload(queries), groupings=record.groupings)
    layout = replace(restore_layout(record.standing, physical.layout), backfilling=frozenset(record.pending_backfills))
    return physical.with_layout(with_ttls(layout, record.ttls))


def _reason(added: list[str], changed: list[str], left: list[str]) -> str:
    """
    >>> _reason(["a", "b"], [], ["c"])
    'restarted, added a, b, dropped c'
    """
    parts = (("added", added), ("replaced", changed), ("dropped", left))
    return ", ".join(["restarted", *(f"{what} {', '.join(names)}" for what, names in parts if names)])
