"""The queries of a run as they come and go.

A change is planned and bound when it is asked for, by whoever asks; the next batch takes it up. What a new query sees
is its windows from `since` on, and nothing is ever passed off as a full window that is not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

from weft.engine import Layout, QueryLayout
from weft.engine.succession import Reader, follow, reach_back
from weft.model import ACQ, WeftError, Workload
from weft.plan import Plan
from weft.spark.bind import Binding
from weft.spark.checkpoint import Record
from weft.spark.plans import PlanRecord, all_plans, newest_plan, plan_record, write_plan
from weft.spark.store import Store
from weft.spark.weaver import Weaver
from weft.sql import parse

Since = Literal["now", "state"]


class CannotChange(WeftError):
    """A change that would leave the job without a query, or two of one name."""


class Live:
    """Who is in the job, by which plan the next batch runs, and what is written down of it."""

    def __init__(self, weaver: Weaver, plan: Plan, binding: Binding, store: Store) -> None:
        self._weaver = weaver
        self._store = store
        self._lock = threading.Lock()
        self._joining: dict[str, Since] = {}
        self._reasons: list[str] = []
        self._pending: Binding | None = None
        self.plan = plan
        self.binding = binding
        record = newest_plan(store)
        self._live = record.live if record else ()
        self._dropped = dict(record.dropped) if record else {}
        self._record = record or self._write(0, "woven")
        if record is not None:
            self._resume(record)

    def _resume(self, record: PlanRecord) -> None:
        """The queries that are given, without those that were dropped and with those that were added while it ran."""
        wanted = {q.name: q for q in self.plan.workload if record.dropped.get(q.name) != q.spark_sql}
        for name in record.live:
            if name not in wanted:
                (wanted[name],) = parse(record.texts[name], event_time=self._weaver.event_time, name=name)
        added = [n for n, q in wanted.items() if record.texts.get(n) != q.spark_sql]
        gone = [n for n in record.texts if n not in wanted]
        said = [f"{what} {', '.join(names)}" for what, names in (("added", added), ("dropped", gone)) if names]
        self._plan_for(Workload(wanted.values()), dict.fromkeys(added, "now"), ", ".join(["restarted", *said]))

    def add(self, queries: list[ACQ], since: Since) -> list[str]:
        with self._lock:
            present = {q.name for q in self.plan.workload}
            for query in queries:
                if query.name in present:
                    raise CannotChange(f"there is a query {query.name} already; give the new one another name")
            names = [q.name for q in queries]
            self._plan_for(
                Workload([*self.plan.workload, *queries]), dict.fromkeys(names, since), f"added {', '.join(names)}"
            )
            self._live = (*self._live, *names)
            return names

    def drop(self, names: list[str]) -> None:
        with self._lock:
            for name in names:
                if name not in self.plan.workload.by_name:
                    there = ", ".join(list(self.plan.workload.by_name)[:10])
                    raise CannotChange(f"there is no query {name}; there are {there}")
            stay = [q for q in self.plan.workload if q.name not in names]
            if not stay:
                raise CannotChange("a job needs a query: stop it instead of dropping the last one")
            left = {n: self.plan.workload.by_name[n].spark_sql for n in names}
            self._plan_for(Workload(stay), {}, f"dropped {', '.join(names)}")
            self._live = tuple(n for n in self._live if n not in names)
            self._dropped.update(left)

    def _plan_for(self, workload: Workload, joining: Mapping[str, Since], reason: str) -> None:
        self.plan, self._pending = self._weaver.weave(workload, self._record.groupings)
        names = {q.name for q in workload}
        self._joining = {n: s for n, s in {**self._joining, **joining}.items() if n in names}
        self._reasons.append(reason)

    def take_up(self, batch: int, before: Record | None, opened: Callable[[Layout], None]) -> Binding:
        """The binding that this batch runs by. `opened` is told of a layout that has not run yet."""
        with self._lock:
            if self._pending is None:
                if batch > self._record.batch and self.binding.layout.fresh:
                    self.binding = _with(self.binding, replace(self.binding.layout, fresh=frozenset()))
                return self.binding
            cut = None if before is None or before.latest is None else before.latest + 1
            joined = self._readers(self._pending.layout, cut, before)
            layout = follow(self._record.standing, self._pending.layout, joined, cut)
            if batch == self._record.batch:  # the batch is repeated: those that joined with it do so again
                again = {q.name for q in layout.queries} & set(self._record.fresh)
                layout = replace(layout, fresh=layout.fresh | again)
            opened(layout)
            self.binding = _with(self._pending, layout)
            self._record = self._write(batch, "; ".join(self._reasons))
            self._pending, self._joining, self._reasons = None, {}, []
            return self.binding

    def _write(self, batch: int, reason: str) -> PlanRecord:
        record = plan_record(
            batch,
            self.binding.layout,
            texts={q.name: q.spark_sql for q in self.plan.workload},
            groupings=self.binding.groupings,
            live=self._live,
            dropped=dict(self._dropped),
            reason=reason,
        )
        write_plan(self._store, record)
        return record

    def _readers(self, layout: Layout, cut: int | None, before: Record | None) -> dict[str, Reader]:
        """What those who join with this plan see."""
        return {
            q.name: self._past(q, before) or Reader(cut, ()) if self._joining[q.name] == "state" else Reader(cut, ())
            for q in layout.queries
            if q.name in self._joining
        }

    def _past(self, query: QueryLayout, before: Record | None) -> Reader | None:
        """The tree whose kept slices reach furthest back for this query, if one will do."""
        if before is None or before.watermark is None:
            return None
        horizons = self.binding.layout.horizons(before.watermark)
        found = (reach_back(query, tree, horizons[tree.number]) for tree in self.binding.layout.current)
        return min((r for r in found if r is not None), key=lambda r: r.since or 0, default=None)

    def ever(self) -> set[str]:
        """The names of all queries that left."""
        with self._lock:
            return set(self._dropped)

    def changes(self) -> list[dict[str, Any]]:
        with self._lock:
            return [
                {
                    "batch": record.batch,
                    "reason": record.reason,
                    "queries": len(record.texts),
                    "trees": len(record.standing.current),
                    "older_trees": len(record.standing.older),
                }
                for record in all_plans(self._store)
            ]

    def since(self, name: str) -> int | None:
        """The begin of the first window that the query answers, once a batch has taken it up; None: it sees all."""
        with self._lock:
            reader = self._record.standing.readers.get(name)
        if reader is None:
            raise CannotChange(f"no batch has taken up a query {name} yet")
        return reader.since


def _with(binding: Binding, layout: Layout) -> Binding:
    feeds = tuple(replace(native, layout=feed) for native, feed in zip(binding.feeds, layout.feeds, strict=True))
    return replace(binding, layout=layout, feeds=feeds)
