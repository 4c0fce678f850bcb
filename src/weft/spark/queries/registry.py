"""The queries of a run, which join and leave while it runs.

A change amends the plan at once, and the next batch takes it up. If the amended plan costs too much, all queries are
replanned beside the running job, and a later batch takes up that plan.

Users, batches, the replanner thread and backfill threads call the registry concurrently. What they share is frozen
values, which change under one lock, the one here.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.engine import Layout
from weft.model import ACQ, WeftError
from weft.plan import Plan
from weft.spark.checkpoint.batch_log import BatchRecord
from weft.spark.checkpoint.change_log import read_changes, write_change
from weft.spark.checkpoint.files import CheckpointFileError, CheckpointFiles
from weft.spark.checkpoint.plan_log import BackfillRecord, PlanRecord, newest_plan, plan_changes, write_plan
from weft.spark.errors import failure, is_full
from weft.spark.logs import log_event
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.physical.planner import Planner
from weft.spark.physical.statistics import Feeding, StreamStatistics
from weft.spark.queries import validate
from weft.spark.queries.backfill import BackfillReader
from weft.spark.queries.backfills import Backfills
from weft.spark.queries.change import QueryChange
from weft.spark.queries.membership import Membership, ttls_of
from weft.spark.queries.replanner import Replanner, ReplanResult
from weft.spark.queries.restore import restore_plans, restore_queries
from weft.spark.queries.validate import CannotChange, Since
from weft.spark.queries.versions import ActivePlan, NextPlan, PlanVersions, first_unread

logger = logging.getLogger(__name__)


class QueryRegistry:
    """The queries of the job, the plan of the next batch, and what the checkpoint has of both."""

    def __init__(
        self,
        planner: Planner,
        physical: PhysicalPlan,
        statistics: StreamStatistics,
        store: CheckpointFiles,
        open_sink: Callable[[Layout], None],
        buckets: int = 1,
    ) -> None:
        """`open_sink` gets queries before the first batch that answers them; what it refuses does not join."""
        self.backfill_reader = BackfillReader(store, planner, buckets, self._backfill_failed)
        self._planner = planner
        self._store = store
        self._open_sink = open_sink
        self._lock = threading.Lock()
        self._error: WeftError | None = None
        self._ended = False
        self._failed: dict[str, str] = {}
        record = newest_plan(store)
        if record is None:
            plan = physical.logical
            self._membership = Membership(ttls=ttls_of(plan.workload))
            self._backfills = Backfills(self.backfill_reader, {})
            active = ActivePlan.first(plan, physical, self._membership)
            self._plans = PlanVersions(planner, statistics, active, NextPlan(plan))
            write_plan(store, active.record)
        else:
            self._restore(record, physical, statistics)
        self._replanner = Replanner(planner, self.plan, self._planned)

    def _restore(self, record: PlanRecord, physical: PhysicalPlan, statistics: StreamStatistics) -> None:
        event_time = self._planner.options.event_time
        written = read_changes(self._store, record.changes_applied)
        changes = {number: QueryChange.of(change, event_time) for number, change in written.items()}
        restored = restore_queries(record, physical.logical.workload, changes, event_time)
        self._membership = restored.membership
        self._backfills = Backfills(self.backfill_reader, restored.backfills)
        self.backfill_reader.remove_all_but({**record.completed_backfills, **restored.backfills})
        self._plans = restore_plans(record, restored, physical, self._planner, statistics)

    @property
    def plan(self) -> Plan:
        """The plan of the active queries, in use from the next batch on at the latest."""
        return self._plans.plan

    @property
    def physical(self) -> PhysicalPlan:
        """The plan of the latest batch."""
        return self._plans.active.physical

    @property
    def version(self) -> int:
        """How often the plan has changed in this run."""
        return self._plans.next.version

    def add(self, queries: Sequence[ACQ], since: Since, begin: int | None = None) -> list[str]:
        """`begin` is for backfills: rows before it are left out."""
        with self._lock:
            validate.refuse_existing(self.plan, queries)
            names = [q.name for q in queries]
            self._amend(QueryChange({}, queries, dict.fromkeys(names, since), begin), f"added {', '.join(names)}")
            return names

    def preview(self, queries: Sequence[ACQ]) -> tuple[Plan, Plan]:
        """The plan now, and with more queries; nothing changes, and no batch waits for it."""
        with self._lock:
            plan, groupings, statistics = self.plan, self._plans.groupings, self._plans.statistics
        validate.refuse_existing(plan, queries)
        return plan, self._planner.preview(plan, queries, statistics, groupings)

    def drop(self, names: Sequence[str]) -> None:
        with self._lock:
            validate.refuse_unknown(self.plan, names)
            validate.refuse_all(self.plan, names)
            self._leave(names, f"dropped {', '.join(names)}")

    def replace(self, query: ACQ) -> None:
        """The query replaces the one of its name."""
        with self._lock:
            validate.refuse_unknown(self.plan, [query.name])
            if query.name in self._backfilling():
                raise CannotChange(f"{query.name} still has a backfill; replace it when that is complete, or drop it")
            change = QueryChange(self._texts([query.name]), [query], {query.name: "instead"})
            self._amend(change, f"replaced {query.name}")

    def expel(self, failed: Mapping[str, str]) -> bool:
        """Queries that fail leave the job; whether there were any, and others to continue with."""
        with self._lock:
            existing = [name for name in failed if name in self.plan.workload.by_name]
            if not existing or len(existing) == len(self.plan.workload):
                return False
            self._expel({name: failed[name] for name in existing})
            return True

    def _expel(self, failed: Mapping[str, str]) -> None:
        self._leave(list(failed), "; ".join(f"{name} left: {reason}" for name, reason in failed.items()))
        self._failed.update(failed)
        for name, why in failed.items():
            log_event(logger, "query fails and leaves", level=logging.WARNING, query=name, reason=why)

    def _leave(self, names: Sequence[str], reason: str) -> None:
        self._amend(QueryChange(self._texts(names), (), {}), reason)

    def _texts(self, names: Sequence[str]) -> dict[str, str]:
        return {name: self.plan.workload.by_name[name].identity for name in names}

    def _amend(self, change: QueryChange, reason: str) -> None:
        if change.joining:
            validate.refuse_after_end(self._ended)
        physical = self._plans.amended(change)
        validate.refuse_other_columns(physical.layout, self._plans.layout, change.how)
        if change.joining:
            self._open_sink(validate.only(physical.layout, change.how.keys()))
        membership = self._membership.after(change)
        write_change(self._store, membership.changes, change.record())
        self._membership = membership
        self._plans.adopt(physical, reason, change.joins)
        for query in change.joining:
            log_event(logger, "query joins", query=query.name, since=change.how[query.name])
        for name in change.leaving:
            log_event(logger, "query leaves", query=name, reason=reason)
        self._backfills.forget(change.leaving)
        self._replanner.replan_if_due(self._plans.request())

    def observe(self, measured: StreamStatistics) -> None:
        """New statistics: if the plan's estimate is off, look for a better plan."""
        with self._lock:
            self._replanner.observe(self._plans.request(), measured)

    def weigh_classes(self) -> None:
        """Signatures were counted: see, beside the job, whether filters should be in other classes."""
        with self._lock:
            self._replanner.weigh_classes(self._plans.request())

    def stop(self) -> None:
        """No batch runs any more: end backfills and replanning."""
        self.backfill_reader.stop()
        self.wait_for_plan()

    def wait_for_plan(self) -> None:
        """Until no replanning runs."""
        while True:
            with self._lock:  # threads start under this lock, so one that is seen here can be waited for
                thread = self._replanner.thread
            if thread is None:
                return
            thread.join()

    def _planned(self, result: ReplanResult) -> None:
        """In the thread of the replanner. An outdated result is dropped, and replanning starts again if still due."""
        with self._lock:
            now = self._plans.request()
            holds = result.request.holds(now)
            self._plans.note(self._replanner.end(result, holds))
            if not holds:
                self._replanner.replan_if_due(now)
            elif result.failed is None:
                self._plans.adopt_result(result)

    def note_feeding(self, feeding: Feeding) -> None:
        """Which groupings the last batch rolled up from others: a change is recorded with the next plan."""
        with self._lock:
            self._plans.note_feeding(feeding)

    def take_up(self, batch: int, before: BatchRecord) -> PhysicalPlan:
        """The plan that this batch runs by."""
        with self._lock:
            if self._error is not None:
                raise self._error
            self._ended = self._ended or before.drained
            self._begin_and_end_ttls(before)
            with self._backfills.restored_on_failure():
                self._plans.take_up(self._store, batch, before, self._membership, self._backfills)
            self._backfills.begin(self.plan.workload.by_name, self.physical.groupings)
            return self._plans.refine()

    def refine(self, statistics: StreamStatistics) -> PhysicalPlan:
        """The plan that this batch runs by, with partials made as its rows say."""
        with self._lock:
            self._plans.statistics = statistics
            return self._plans.refine()

    def take_up_last(self, batch: int, before: BatchRecord) -> None:
        """The stream has ended: no query joins any more, and all backfills are complete before the last batch.

        Backfills of queries that joined since the batch before start here.
        """
        with self._lock:
            self._ended = True
        self.take_up(batch, before)
        self.backfill_reader.wait()

    def _begin_and_end_ttls(self, before: BatchRecord) -> None:
        """A TTL begins with the first batch whose time is known; a query leaves after its last window."""
        begun = self._membership.begun(first_unread(before))
        starting = [name for name, ttl in begun.ttls.items() if ttl != self._membership.ttls[name]]
        if starting:
            self._membership = begun
            self._plans.note(f"the TTL of {', '.join(starting)} began")
        # A job needs a query: the last one stays, with nothing more to answer.
        ended = begun.ended(before.watermark)[: len(self.plan.workload) - 1]
        if ended:
            self._leave(ended, f"the TTL of {', '.join(ended)} ended")

    def committed(self) -> None:
        """The first batch of this plan counts: the backfills that it took in are in the state."""
        with self._lock:
            self._backfills.remove(self._plans.active.record.completed_backfills)

    def _backfill_failed(self, name: str, backfill: BackfillRecord, error: Exception) -> None:
        with self._lock:
            reason = f"its backfill failed, {type(error).__name__}: {error}"
            waits = self._backfills.pending.get(name) == backfill
            if waits and is_full(error):  # not caused by the query: a restart does the backfill again
                self._error = CheckpointFileError(f"the backfill of {name} could not be written: {failure(error)}")
            elif waits and len(self.plan.workload) > 1:
                try:
                    self._expel({name: reason})
                except Exception as failed:  # nothing waits for this thread: the next batch raises it
                    self._error = CheckpointFileError(f"{name} could not leave, though {reason}: {failure(failed)}")
            elif waits:  # there is no other query to continue with
                self._error = CannotChange(f"{name} cannot be answered: {reason}; repair the source, or drop the query")

    def failed(self) -> dict[str, str]:
        """Queries that left this run because they failed, with the reason."""
        with self._lock:
            return {name: reason for name, reason in self._failed.items() if name not in self.plan.workload.by_name}

    def backfilling(self) -> list[str]:
        """Queries with a backfill that is not complete."""
        with self._lock:
            return self._backfilling()

    def _backfilling(self) -> list[str]:
        return [*self._backfills.pending, *(n for n, join in self._plans.next.joining.items() if join.how == "source")]

    def former_names(self) -> set[str]:
        """The names of all queries that left."""
        with self._lock:
            return set(self._membership.dropped)

    def changes(self) -> list[dict[str, Any]]:
        with self._lock:
            return plan_changes(self._store)

    def until(self, name: str) -> int | None:
        """The end of the query's TTL, once it has begun; None: it stays."""
        with self._lock:
            validate.refuse_unknown(self.plan, [name])
            return self._membership.ttls[name].until if name in self._membership.ttls else None

    def since(self, name: str) -> int | None:
        """The start of the first window that the query answers, once a batch has taken it up; None: it sees all."""
        with self._lock:
            return self._plans.since(name)
