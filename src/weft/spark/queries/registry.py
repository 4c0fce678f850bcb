"""The queries of a run as they come and go.

A change mends the present plan when it is asked for, by whoever asks, and the next batch takes it up. Where mending has
made a plan that costs too much, all queries are planned anew beside the running job, and a later batch takes that up.

Those who ask, the batches, and the threads that plan and that read the past come here at the same time. What they share
is frozen values, and all of them change under one lock, this one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from weft.engine import Layout
from weft.model import ACQ, WeftError
from weft.plan import Plan
from weft.spark.checkpoint.batch_log import BatchRecord
from weft.spark.checkpoint.change_log import delete_changes, read_changes, write_change
from weft.spark.checkpoint.files import CheckpointFileError, CheckpointFiles
from weft.spark.checkpoint.plan_log import BackfillRecord, PlanRecord, newest_plan, plan_changes, write_plan
from weft.spark.errors import failure, is_full
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.physical.planner import Planner
from weft.spark.physical.statistics import Fed, StreamStatistics
from weft.spark.queries.backfill import Replays
from weft.spark.queries.backfills import Backfills
from weft.spark.queries.change import QueryChange
from weft.spark.queries.membership import Membership, ttls_of
from weft.spark.queries.pending import NextPlan
from weft.spark.queries.replanner import Basis, Found, Replanner
from weft.spark.queries.restore import former, resume
from weft.spark.queries.validate import (
    CannotChange,
    Since,
    only,
    refuse_after_the_end,
    refuse_other_columns,
    refuse_taken,
    refuse_unknown,
)
from weft.spark.queries.versions import ActivePlan, cut


class QueryRegistry:
    """Who is in the job, by which plan the next batch runs, and what is written down of it."""

    def __init__(
        self,
        planner: Planner,
        plan: Plan,
        physical: PhysicalPlan,
        store: CheckpointFiles,
        opened: Callable[[Layout], None],
        buckets: int = 1,
    ) -> None:
        """`opened` is told of queries before the first batch that answers them; what it refuses does not join."""
        self.replays = Replays(store, planner, buckets, self._replay_failed)
        self._planner = planner
        self._store = store
        self._opened = opened
        self._lock = threading.Lock()
        self._broken: WeftError | None = None
        self._ended = False
        self._failed: dict[str, str] = {}
        self._fed = Fed()
        record = newest_plan(store)
        if record is None:
            self._pending = NextPlan(plan)
            self._members = Membership(ttls=ttls_of(plan.workload))
            self._waiting = Backfills(self.replays, {})
            self._present = ActivePlan.first(plan, physical, self._members)
            write_plan(store, self._present.record)
        else:
            self._resume(record, plan, physical)
        self._replanning = Replanner(planner, self.plan, self._planned)

    def _resume(self, record: PlanRecord, given: Plan, physical: PhysicalPlan) -> None:
        written = read_changes(self._store, record.asked)
        asked = {n: QueryChange.of(change, self._planner.options.event_time) for n, change in written.items()}
        resumed = resume(record, given.workload, asked, self._planner.options.event_time)
        self._members = resumed.members
        self._waiting = Backfills(self.replays, resumed.held)
        self.replays.forget_all_but({**record.arrived, **resumed.held})
        plan, bound = self._planner.weave(resumed.queries, record.groupings)
        self._present = ActivePlan.resumed(record, physical)
        if resumed.reads_slices:
            self._present = replace(self._present, physical=former(record, self._planner))
        self._pending = NextPlan(given).adopt(plan, bound, resumed.reason, record.cost, resumed.joining)

    @property
    def plan(self) -> Plan:
        """Of the queries that are there, which holds from the next batch on at the latest."""
        return self._pending.plan

    @property
    def physical(self) -> PhysicalPlan:
        """That the latest batch runs by."""
        return self._present.physical

    @property
    def version(self) -> int:
        """How often the plan has changed in this run."""
        return self._pending.version

    def add(self, queries: Sequence[ACQ], since: Since, begin: int | None = None) -> list[str]:
        """`begin` is for those who read the source again: rows before it are not theirs."""
        with self._lock:
            refuse_taken(self.plan, queries)
            names = [q.name for q in queries]
            self._mend(QueryChange({}, queries, dict.fromkeys(names, since), begin), f"added {', '.join(names)}")
            return names

    def preview(self, queries: Sequence[ACQ]) -> tuple[Plan, Plan]:
        """The plan as it is, and as it would be with queries more; nothing changes, and no batch waits for it."""
        with self._lock:
            plan, groupings = self.plan, self._present.record.groupings
        refuse_taken(plan, queries)
        return plan, self._planner.preview(plan, queries, groupings)

    def drop(self, names: Sequence[str]) -> None:
        with self._lock:
            refuse_unknown(self.plan, names)
            if len(set(names)) == len(self.plan.workload):
                raise CannotChange("a job needs a query: stop it instead of dropping the last one")
            self._leave(names, f"dropped {', '.join(names)}")

    def replace(self, query: ACQ) -> None:
        """The query takes the place of the one that has its name."""
        with self._lock:
            refuse_unknown(self.plan, [query.name])
            if query.name in self._waits():
                raise CannotChange(f"{query.name} still reads its past; replace it when it answers, or drop it")
            change = QueryChange(self._texts([query.name]), [query], {query.name: "instead"})
            self._mend(change, f"replaced {query.name}")

    def expel(self, failed: Mapping[str, str]) -> bool:
        """Queries that cannot be answered leave; whether there were some, and others to go on with."""
        with self._lock:
            there = [name for name in failed if name in self.plan.workload.by_name]
            if not there or len(there) == len(self.plan.workload):
                return False
            self._expel({name: failed[name] for name in there})
            return True

    def _expel(self, failed: Mapping[str, str]) -> None:
        self._leave(list(failed), "; ".join(f"{name} left: {said}" for name, said in failed.items()))
        self._failed.update(failed)

    def _leave(self, names: Sequence[str], reason: str) -> None:
        self._mend(QueryChange(self._texts(names), (), {}), reason)

    def _texts(self, names: Sequence[str]) -> dict[str, str]:
        return {name: self.plan.workload.by_name[name].identity for name in names}

    def _mend(self, change: QueryChange, reason: str) -> None:
        if change.joining:
            refuse_after_the_end(self._ended)
        groupings, running = self._present.record.groupings, self._pending.physical or self._present.physical
        plan, physical = self._planner.mend(self.plan, change.joining, list(change.leaving), groupings)
        refuse_other_columns(physical.layout, running.layout, change.how)
        if change.joining:
            self._opened(only(physical.layout, change.how.keys()))
        members = self._members.after(change)
        write_change(self._store, members.asked, change.record())
        self._members = members
        self._pending = self._pending.adopt(plan, physical, reason, float(self.plan.cost), change.joins)
        self._waiting.forget(change.leaving)
        self._replanning.plan_where_due(self._basis())

    def observe(self, seen: StreamStatistics) -> None:
        """The stream is like that: where the plan's estimate is off by it, a better one is looked for."""
        with self._lock:
            self._replanning.observe(self._basis(), seen)

    def weigh_classes(self) -> None:
        """Signatures were counted: begin to see, beside the job, whether filters should be in other classes."""
        with self._lock:
            self._replanning.weigh_classes(self._basis())

    def stop(self) -> None:
        """No batch runs any more: end what is read and planned beside them."""
        self.replays.stop()
        self.wait_for_plan()

    def wait_for_plan(self) -> None:
        """Until no plan is being made."""
        while True:
            with self._lock:  # where threads are begun: one that is seen here can be waited for
                thread = self._replanning.thread
            if thread is None:
                return
            thread.join()

    def _basis(self) -> Basis:
        bound = self._pending.physical or self._present.bare
        return Basis(self.version, self.plan, self._present.record.groupings, bound.classes)

    def _planned(self, found: Found) -> None:
        """In a thread of its own. What was overtaken by another change is thrown away, and redone where still due."""
        with self._lock:
            now = self._basis()
            self._tell(self._replanning.end(found, found.basis.holds(now)))
            if not found.basis.holds(now):
                self._replanning.plan_where_due(now)
            elif found.failed is not None:
                return
            elif found.plan is not None and found.physical is not None:
                cost = float(found.basis.plan.cost)
                self._pending = self._pending.adopt(found.plan, found.physical, found.reason, cost)
            else:
                self._pending = replace(self._pending, plan=found.basis.plan)

    def tell_of_phantoms(self, fed: str | None, flow: float | None = None) -> None:
        """Groups were counted anew, and other groupings feed others by that; how partials are made is no plan's.

        `flow` is how many rows of a group came one after the other, where that had a say.
        """
        with self._lock:
            now = Fed(fed, flow)
            self._tell(now.difference(self._fed))
            self._fed = now

    def _tell(self, reason: str | None) -> None:
        if reason is not None:
            self._pending = self._pending.tell(reason, self._present.bare)

    def take_up(self, batch: int, before: BatchRecord) -> PhysicalPlan:
        """The binding that this batch runs by."""
        with self._lock:
            if self._broken is not None:
                raise self._broken
            self._ended = self._ended or before.drained
            self._begin_and_end_lives(before)
            with self._waiting.unless_it_fails():
                self._take_up(batch, before)
            self._waiting.begin(self.plan.workload.by_name, self.physical.groupings)
            return self.physical

    def _take_up(self, batch: int, before: BatchRecord) -> None:
        arrived = self._find_arrived(batch)
        pending, bound = self._pending, self._pending.physical
        if bound is None:
            self._present = self._present.going_on(batch)
            return
        pasts = self._waiting.pasts(pending, bound, before, arrived, self._present.following(before))
        present = self._present.succeeded(batch, before, pending, bound, self._members, pasts)
        write_plan(self._store, present.record)
        delete_changes(self._store, self._members.asked)
        self._present, self._pending = present, pending.taken_up()

    def take_up_last(self, batch: int, before: BatchRecord) -> None:
        """The stream has ended: nobody joins any more, and all who wait get their past before the last batch.

        Those who joined since the batch before have theirs read only from here on.
        """
        with self._lock:
            self._ended = True
        self.take_up(batch, before)
        self.replays.wait()

    def _begin_and_end_lives(self, before: BatchRecord) -> None:
        """A life begins with the first batch that knows the time; who has answered its last window leaves the plan."""
        begun = self._members.begun(cut(before))
        starting = [name for name, ttl in begun.ttls.items() if ttl != self._members.ttls[name]]
        if starting:
            self._members = begun
            self._tell(f"the TTL of {', '.join(starting)} began")
        # A job needs a query: the last one stays, and has nothing more to answer.
        ended = begun.ended(before.watermark)[: len(self.plan.workload) - 1]
        if ended:
            self._leave(ended, f"the TTL of {', '.join(ended)} ended")

    def _find_arrived(self, batch: int) -> dict[str, BackfillRecord]:
        """Those whose past is there, and joins with this batch."""
        ready, record = self._waiting.arrive(), self._present.record
        if ready:
            self._tell(f"{', '.join(ready)} got the rows of the past")
        if batch == record.batch:  # the batch is repeated
            ready |= self._waiting.arrived_again(record.arrived, self.plan.workload.by_name)
        return ready

    def committed(self) -> None:
        """The batch that this plan began with counts: what it took in from the past is in the state."""
        with self._lock:
            self._waiting.taken_in(self._present.record.arrived)

    def _replay_failed(self, name: str, held: BackfillRecord, error: Exception) -> None:
        with self._lock:
            said = f"its past could not be read, {type(error).__name__}: {error}"
            waits = self._waiting.held.get(name) == held
            if waits and is_full(error):  # no fault of the query: a restart reads its past again
                self._broken = CheckpointFileError(f"the past of {name} could not be kept: {failure(error)}")
            elif waits and len(self.plan.workload) > 1:
                try:
                    self._expel({name: said})
                except Exception as failed:  # nobody waits for this thread: the next batch is told
                    self._broken = CheckpointFileError(f"{name} could not leave, though {said}: {failure(failed)}")
            elif waits:  # nobody else is there to go on with
                self._broken = CannotChange(f"{name} cannot be answered: {said}; mend the source, or drop the query")

    def failed(self) -> dict[str, str]:
        """Queries that left this run because they could not be answered, with the reason."""
        with self._lock:
            return {name: said for name, said in self._failed.items() if name not in self.plan.workload.by_name}

    def waiting(self) -> list[str]:
        """Queries that still read their past."""
        with self._lock:
            return self._waits()

    def _waits(self) -> list[str]:
        return [*self._waiting.held, *(n for n, join in self._pending.joining.items() if join.how == "source")]

    def ever(self) -> set[str]:
        """The names of all queries that left."""
        with self._lock:
            return set(self._members.dropped)

    def changes(self) -> list[dict[str, Any]]:
        with self._lock:
            return plan_changes(self._store)

    def until(self, name: str) -> int | None:
        """The end of the query's life, once it has begun; None: it stays."""
        with self._lock:
            refuse_unknown(self.plan, [name])
            return self._members.ttls[name].until if name in self._members.ttls else None

    def since(self, name: str) -> int | None:
        """The begin of the first window that the query answers, once a batch has taken it up; None: it sees all."""
        with self._lock:
            reader = self._present.record.standing.readers.get(name)
            if reader is None or name in self._pending.joining:
                raise CannotChange(f"no batch has taken up a query {name} yet")
        return reader.since
