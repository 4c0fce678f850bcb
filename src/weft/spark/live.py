"""The queries of a run as they come and go.

A change mends the present plan when it is asked for, by whoever asks, and the next batch takes it up. Where mending has
made a plan that costs too much, all queries are planned anew beside the running job, and a later batch takes that up.
What a new query sees is its windows from `since` on, and nothing is ever passed off as a full window that is not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal

from weft.engine import Grouping, Layout, QueryLayout, TreeLayout
from weft.engine.succession import Reader, follow, reach_back, take_up
from weft.model import ACQ, Life, WeftError, Workload
from weft.optimizer import Stream
from weft.optimizer.incremental import Curve, deviates, excess
from weft.plan import Plan
from weft.spark.asked import Asked, Joining, forget_asked, read_asked, write_asked
from weft.spark.bind import Binding
from weft.spark.checkpoint import Record
from weft.spark.classing import Classing, better_classes
from weft.spark.failing import failure, is_full
from weft.spark.observing import Seen
from weft.spark.plans import Change, PlanRecord, newest_plan, plan_notes, plan_record, write_plan
from weft.spark.replay import Held, Replayed, Replays
from weft.spark.store import Store, StoreError
from weft.spark.weaver import Weaver
from weft.sql import parse

Since = Literal["now", "state", "source"]
"""What a query sees that joins."""


class CannotChange(WeftError):
    """A change that would leave the job without a query, or two of one name, or one name with other answers."""


class Live:
    """Who is in the job, by which plan the next batch runs, and what is written down of it."""

    def __init__(
        self,
        weaver: Weaver,
        plan: Plan,
        binding: Binding,
        store: Store,
        opened: Callable[[Layout], None],
        buckets: int = 1,
    ) -> None:
        """`opened` is told of queries before the first batch that answers them; what it refuses does not join."""
        self.replays = Replays(store, weaver, buckets, self._replay_failed)
        self._begins: dict[str, int | None] = {}
        self._broken: WeftError | None = None
        self._failed: dict[str, str] = {}
        self._weaver = weaver
        self._store = store
        self._opened = opened
        self._lock = threading.Lock()
        self._joining: dict[str, Joining] = {}
        self._changes: list[Change] = []
        self._pending: Binding | None = None
        self._version = 0  # of the plan: grows with every change that is asked for
        self._replanning: threading.Thread | None = None
        self._counted = Stream()  # what the plan counts on beside its rate
        self._fed: str | None = None
        self._flow: float | None = None
        self._signed = 0  # how often signatures had been counted when classes were last thought of
        self.plan = plan
        record = newest_plan(store)
        self._lives = dict(record.lives) if record else lives_of(plan.workload)
        self._bare = binding
        self.binding = binding.with_layout(lived(binding.layout, self._lives))
        self._live = record.live if record else ()
        self._dropped = dict(record.dropped) if record else {}
        self._held = dict(record.held) if record else {}
        self._asked = record.asked if record else 0  # changes that were asked for since the checkpoint began
        self._record = record or self._write(0, [_change("woven", None, plan)])
        if record is not None:
            self._resume(record)
        self._curve = Curve(((len(self.plan.workload), self.plan.cost),))

    def _resume(self, record: PlanRecord) -> None:
        """The queries that are given, without those that were dropped and with those that were added while it ran, or
        were to be when it stopped."""
        asked = read_asked(self._store, record.asked, self._weaver.event_time)
        self._asked = max(asked, default=record.asked)
        joining: dict[str, Joining] = {}
        wanted = {q.name: q for q in self.plan.workload if q.identity not in record.dropped.get(q.name, ())}
        for name in record.live:
            if name not in wanted:
                (wanted[name],) = parse(record.texts[name], event_time=self._weaver.event_time, name=name)
        for change in asked.values():
            self._live = (*(n for n in self._live if n not in change.leaving), *(q.name for q in change.joining))
            gone = [q for n, q in wanted.items() if change.leaving.get(n) == q.identity]
            self._forget(gone)
            wanted = {n: q for n, q in wanted.items() if q not in gone}
            for query in change.joining:
                if query.name not in wanted:
                    wanted[query.name] = query
                    joining[query.name] = change.how[query.name]
                    self._begins[query.name] = change.begin
        added = [n for n in wanted if n not in record.texts]
        changed = [n for n, q in wanted.items() if n in joining or record.texts.get(n, q.identity) != q.identity]
        changed = [n for n in changed if n in record.texts]
        left = [n for n in record.texts if n not in wanted]
        parts = (("added", added), ("replaced", changed), ("dropped", left))
        said = [f"{what} {', '.join(names)}" for what, names in parts if names]
        self._held = {n: held for n, held in record.held.items() if n in wanted and n not in changed}
        self.replays.forget_all_but({**record.arrived, **self._held})
        kept = {n: life for n, life in record.lives.items() if n in wanted and n not in changed}
        self._lives = {**lives_of(wanted[n] for n in [*added, *changed]), **kept}
        plan, binding = self._weaver.weave(Workload(wanted.values()), record.groupings)
        if {"state", "instead"} & set(joining.values()):
            self.binding = self._former(record)
        reason = ", ".join(["restarted", *said])
        self._adopt(plan, binding, {**dict.fromkeys([*added, *changed], "now"), **joining}, reason, record.cost)

    def _former(self, record: PlanRecord) -> Binding:
        """The queries of a plan over the trees that it had: what the kept slices are of, for those who read them."""
        texts = record.texts.items()
        queries = [parse(text, event_time=self._weaver.event_time, name=name)[0] for name, text in texts]
        _, bound = self._weaver.weave(Workload(queries), record.groupings)
        layout = replace(take_up(record.standing, bound.layout), held=frozenset(record.held))
        return bound.with_layout(lived(layout, record.lives))

    def add(self, queries: Sequence[ACQ], since: Since, begin: int | None = None) -> list[str]:
        """`begin` is for those who read the source again: rows before it are not theirs."""
        with self._lock:
            self._refuse_taken(self.plan, queries)
            names = [q.name for q in queries]
            self._mend(queries, (), dict.fromkeys(names, since), f"added {', '.join(names)}", begin)
            self._begins.update(dict.fromkeys(names, begin))
            self._lives.update(lives_of(queries))
            self._live = (*self._live, *names)
            return names

    def preview(self, queries: Sequence[ACQ]) -> tuple[Plan, Plan]:
        """The plan as it is, and as it would be with queries more; nothing changes, and no batch waits for it."""
        with self._lock:
            plan, groupings = self.plan, self._record.groupings
        self._refuse_taken(plan, queries)
        return plan, self._weaver.preview(plan, queries, groupings)

    @staticmethod
    def _refuse_taken(plan: Plan, queries: Sequence[ACQ]) -> None:
        for query in queries:
            if query.name in plan.workload.by_name:
                raise CannotChange(
                    f"there is a query {query.name} already; give the new one another name, or replace the old one"
                )

    def drop(self, names: Sequence[str]) -> None:
        with self._lock:
            self._find(names)
            if len(set(names)) == len(self.plan.workload):
                raise CannotChange("a job needs a query: stop it instead of dropping the last one")
            self._leave(names, f"dropped {', '.join(names)}")

    def _leave(self, names: Sequence[str], reason: str) -> None:
        left = [self.plan.workload.by_name[n] for n in names]
        self._mend((), names, {}, reason)
        self._live = tuple(n for n in self._live if n not in names)
        self._forget(left)

    def replace(self, query: ACQ) -> None:
        """The query takes the place of the one that has its name."""
        with self._lock:
            self._find([query.name])
            if query.name in self._held or self._joining.get(query.name) == "source":
                raise CannotChange(f"{query.name} still reads its past; replace it when it answers, or drop it")
            old = self.plan.workload.by_name[query.name]
            self._mend([query], [query.name], {query.name: "instead"}, f"replaced {query.name}")
            self._live = (*(n for n in self._live if n != query.name), query.name)
            self._forget([old])
            self._lives.update(lives_of([query]))

    def _forget(self, queries: Sequence[ACQ]) -> None:
        for query in queries:
            texts = (*self._dropped.get(query.name, ()), query.identity)
            self._dropped[query.name] = tuple(dict.fromkeys(texts))
            self._lives.pop(query.name, None)
            held = self._held.pop(query.name, None)
            if held is not None:
                self.replays.forget(query.name, held)

    def _find(self, names: Sequence[str]) -> None:
        for name in names:
            if name not in self.plan.workload.by_name:
                there = ", ".join(list(self.plan.workload.by_name)[:10])
                raise CannotChange(f"there is no query {name}; there are {there}")

    def _mend(
        self,
        queries: Sequence[ACQ],
        leaving: Sequence[str],
        joining: Mapping[str, Joining],
        reason: str,
        begin: int | None = None,
    ) -> None:
        plan, binding = self._weaver.mend(self.plan, queries, leaving, self._record.groupings)
        self._refuse_other_columns(binding.layout, joining)
        if joining:
            self._opened(_only(binding.layout, joining.keys()))
        left = {name: self.plan.workload.by_name[name].identity for name in leaving}
        write_asked(self._store, self._asked + 1, Asked(left, queries, joining, begin))
        self._asked += 1
        self._adopt(plan, binding, joining, reason, float(self.plan.cost))
        self._plan_anew_where_due()

    def _refuse_other_columns(self, layout: Layout, joining: Mapping[str, Joining]) -> None:
        """Whoever reads the answers of a name must find the columns that it had."""
        running = (self._pending or self.binding).layout
        before = {q.name: q.schema for q in running.queries if joining.get(q.name) == "instead"}
        for query in layout.queries:
            if query.name in before and not _alike(query.schema, before[query.name]):
                raise CannotChange(
                    f"{query.name} answers {_columns(before[query.name])}, and what is to take its place "
                    f"{_columns(query.schema)}; give the same columns, or drop it and add the other under another name"
                )

    def _adopt(
        self, plan: Plan, binding: Binding, joining: Mapping[str, Joining], reason: str, cost_before: float | None
    ) -> None:
        self.plan, self._pending = plan, binding
        present = plan.workload.by_name
        self._joining = {n: s for n, s in {**self._joining, **joining}.items() if n in present}
        self._changes.append(_change(reason, cost_before, plan))
        self._version += 1

    def _plan_anew_where_due(self) -> None:
        """Begin to plan all queries anew where the mended plan has come too far from that, beside the job."""
        if deviates(self._curve, self.plan, self._weaver.deviation):
            above = float(excess(self._curve, self.plan))
            said = f"planned anew: {above:.1%} above what the curve lets expect"
            self._begin_plan(self.plan, self._counted, self._curve, said)

    def observe(self, seen: Seen) -> None:
        """The stream is like that: where the plan's estimate is off by it, a better one is looked for."""
        with self._lock:
            tolerance, counted = self._weaver.deviation, Seen(self.plan.rate, self._counted)
            if tolerance is None or self._replanning is not None:
                return
            if self._weaver.is_off(self.plan, counted, seen, tolerance):
                now = self._weaver.at_rate(self.plan, seen.rate)
                said = "; ".join(seen.differences(counted, tolerance))
                self._begin_plan(now, seen.stream, Curve(()), f"planned anew: {said}")

    def weigh_classes(self) -> None:
        """Signatures were counted: begin to see, beside the job, whether filters should be in other classes."""
        with self._lock:
            tolerance, signed = self._weaver.deviation, self._weaver.phantoms.signed
            if tolerance is not None and self._replanning is None and signed != self._signed:
                self._signed = signed
                present, groupings = self._pending or self._bare, self._record.groupings
                self._begin_thread(self._class_anew, self._version, self.plan, present.classes, groupings, tolerance)

    def _class_anew(
        self,
        version: int,
        plan: Plan,
        classes: Sequence[Classing],
        groupings: tuple[tuple[str, ...], ...],
        tolerance: Fraction,
    ) -> None:
        """In a thread of its own. Where other classes make rows cheaper by more than the tolerance, the plan is bound
        with those; it stays as it is."""
        binding: Binding | None = None
        try:
            known = partial(self._weaver.phantoms.occurrences, self._weaver.stream)
            reason = better_classes(classes, known, tolerance)
            if reason is not None:
                binding = self._weaver.bind(plan, groupings)
        finally:
            with self._lock:
                self._replanning = None
                if version != self._version or groupings != self._record.groupings:
                    self._signed = 0  # another change was faster: the next batch asks again
                    self._plan_anew_where_due()
                elif binding is not None and reason is not None:
                    self._adopt(plan, binding, {}, reason, float(plan.cost))

    def tell_of_phantoms(self, fed: str | None, flow: float | None = None) -> None:
        """Groups were counted anew, and other groupings feed others by that; how partials are made is no plan's.

        `flow` is how many rows of a group came one after the other, where that had a say.
        """
        with self._lock:
            if self._fed is not None and fed is not None and fed != self._fed:
                self._pending = self._pending or self._bare
                flows = _flows(flow, self._flow)
                reason = f"groups were counted anew{flows}: {fed}, not {self._fed}"
                self._changes.append(_change(reason, float(self.plan.cost), self.plan))
            self._fed, self._flow = fed, flow

    def _begin_plan(self, present: Plan, stream: Stream, curve: Curve, reason: str) -> None:
        if self._replanning is None:
            self._begin_thread(self._plan_anew, self._version, present, stream, curve, self._record.groupings, reason)

    def _begin_thread(self, target: Callable[..., None], *arguments: object) -> None:
        self._replanning = threading.Thread(target=target, args=arguments, daemon=True)
        self._replanning.start()

    def _plan_anew(
        self,
        version: int,
        present: Plan,
        stream: Stream,
        curve: Curve,
        groupings: tuple[tuple[str, ...], ...],
        reason: str,
    ) -> None:
        """In a thread of its own. What was overtaken by another change is thrown away, and redone where still due."""
        binding: Binding | None = None
        try:
            plan, curve = self._weaver.anew(present.workload, curve, Seen(present.rate, stream))
            # What is there may be the better plan; then only the curve learns from the other.
            if self._weaver.price(plan, stream) < self._weaver.price(present, stream):
                binding = self._weaver.bind(plan, groupings)
        finally:
            with self._lock:
                self._replanning = None
                self._curve = curve
                overtaken = version != self._version or groupings != self._record.groupings
                if overtaken:
                    self._plan_anew_where_due()
                elif binding is not None:
                    self._counted = stream
                    self._adopt(plan, binding, {}, reason, float(present.cost))
                else:
                    self._counted, self.plan = stream, present

    @property
    def version(self) -> int:
        """How often the plan has changed in this run."""
        return self._version

    def wait_for_plan(self) -> None:
        """Until no plan is being made."""
        while True:
            with self._lock:  # where threads are begun: one that is seen here can be waited for
                thread = self._replanning
            if thread is None:
                return
            thread.join()

    def take_up(self, batch: int, before: Record | None) -> Binding:
        """The binding that this batch runs by."""
        with self._lock:
            if self._broken is not None:
                raise self._broken
            cut = None if before is None or before.latest is None else before.latest + 1
            self._begin_and_end_lives(cut, before)
            arrived = self._find_arrived(batch)
            if self._pending is None:
                if batch > self._record.batch and self.binding.layout.fresh:
                    layout = replace(self.binding.layout, fresh=frozenset())
                    self.binding = replace(self.binding.with_layout(layout), replayed=())
                return self.binding
            joined = self._readers(self._pending.layout, cut, before)
            arriving = [] if before is None else self._hold(joined, before)
            mark, newest = (None, {}) if before is None else (before.watermark, before.newest)
            pending = replace(self._pending.layout, held=frozenset(self._held), fresh=frozenset(arrived))
            given = self._given(before)
            layout = follow(self._record.standing, pending, joined, cut, mark, newest, arriving, given)
            changes = self._changes
            if batch == self._record.batch:  # the batch is repeated: those that joined with it do so again
                again = {q.name for q in layout.queries} & set(self._record.fresh)
                layout = replace(layout, fresh=layout.fresh | again)
                changes = [*self._record.changes, *changes]
            self._bare = self._pending
            self.binding = replace(
                self._pending.with_layout(lived(layout, self._lives)), replayed=self._replayed(arrived)
            )
            self._record = self._write(batch, changes, arrived, given)
            forget_asked(self._store, self._asked)
            self._pending, self._joining, self._changes = None, {}, []
            for name, held in self._held.items():
                self.replays.begin(name, self.plan.workload.by_name[name], held, self._bare.groupings)
            return self.binding

    def _find_arrived(self, batch: int) -> dict[str, Held]:
        """Those whose past is there, and joins with this batch."""
        ready = {name: held for name, held in self._held.items() if self.replays.done(name, held)}
        if ready:
            self._pending = self._pending or self._bare
            reason = f"{', '.join(ready)} got the rows of the past"
            self._changes.append(_change(reason, float(self.plan.cost), self.plan))
        self._held = {name: held for name, held in self._held.items() if name not in ready}
        if batch == self._record.batch:  # the batch is repeated
            there = self.plan.workload.by_name
            ready |= {n: h for n, h in self._record.arrived.items() if n in there and self.replays.done(n, h)}
        return ready

    def _given(self, before: Record | None) -> int:
        """The first number that no tree has had of which something may still be kept."""
        kept = {} if before is None else before.newest
        standing = self._record.standing
        known = (*(t.number for t in (*standing.current, *standing.older)), *kept)
        return max(self._record.given, 1 + max(known))

    def _hold(self, joined: dict[str, Reader], before: Record) -> list[TreeLayout]:
        """Those who join from the source wait: a pool for what is to come, each."""
        assert self._pending is not None
        groupings, following = self._pending.groupings, self._given(before)
        arriving: list[TreeLayout] = []
        for name in (n for n in joined if self._joining.get(n) == "source"):
            folder = self.replays.prepare(name, before.batch - before.apart)
            held = Held(following + len(arriving), self._begins.pop(name, None), folder)
            arriving.append(self.replays.pool(self.plan.workload.by_name[name], held.pool, groupings))
            joined[name] = Reader(held.begin, (held.pool,))
            self._held[name] = held
        return arriving

    def _replayed(self, arrived: Mapping[str, Held]) -> tuple[Replayed, ...]:
        assert self._pending is not None
        named = enumerate(arrived.items(), len(self._pending.feeds))
        by_name, groupings = self.plan.workload.by_name, self._pending.groupings
        return tuple(self.replays.replayed(n, by_name[n], held, feed, groupings) for feed, (n, held) in named)

    def committed(self) -> None:
        """The batch that this plan began with counts: what it took in from the past is in the state."""
        with self._lock:
            for name, held in self._record.arrived.items():
                self.replays.forget(name, held)

    def _replay_failed(self, name: str, held: Held, error: Exception) -> None:
        with self._lock:
            said = f"its past could not be read, {type(error).__name__}: {error}"
            waits = self._held.get(name) == held
            if waits and is_full(error):  # no fault of the query: a restart reads its past again
                self._broken = StoreError(f"the past of {name} could not be kept: {failure(error)}")
            elif waits and len(self.plan.workload) > 1:
                self._leave([name], f"{name} left: {said}")
            elif waits:  # nobody else is there to go on with
                self._broken = CannotChange(f"{name} cannot be answered: {said}; mend the source, or drop the query")

    def expel(self, failed: Mapping[str, str]) -> bool:
        """Queries that cannot be answered leave; whether there were some, and others to go on with."""
        with self._lock:
            there = [name for name in failed if name in self.plan.workload.by_name]
            if not there or len(there) == len(self.plan.workload):
                return False
            self._leave(there, "; ".join(f"{name} left: {failed[name]}" for name in there))
            self._failed.update((name, failed[name]) for name in there)
            return True

    def failed(self) -> dict[str, str]:
        """Queries that left this run because they could not be answered, with the reason."""
        with self._lock:
            return {name: said for name, said in self._failed.items() if name not in self.plan.workload.by_name}

    def waiting(self) -> list[str]:
        """Queries that still read their past."""
        with self._lock:
            return [*self._held, *(n for n, how in self._joining.items() if how == "source")]

    def _begin_and_end_lives(self, cut: int | None, before: Record | None) -> None:
        """A life begins with the first batch that knows the time; who has answered its last window leaves the plan."""
        begun = {name: life.begun(cut) for name, life in self._lives.items()}
        starting = [name for name, life in begun.items() if life != self._lives[name]]
        if starting:
            self._lives = begun
            self._pending = self._pending or self._bare
            reason = f"the life of {', '.join(starting)} began"
            self._changes.append(_change(reason, float(self.plan.cost), self.plan))
        mark = None if before is None else before.watermark
        ended = [n for n, life in begun.items() if mark is not None and life.until is not None and life.until <= mark]
        # A job needs a query: the last one stays, and has nothing more to answer.
        ended = ended[: len(self.plan.workload) - 1]
        if ended:
            self._leave(ended, f"the life of {', '.join(ended)} ended")

    def _write(
        self, batch: int, changes: Sequence[Change], arrived: Mapping[str, Held] | None = None, given: int = 0
    ) -> PlanRecord:
        record = plan_record(
            batch,
            self.binding.layout,
            texts={q.name: q.identity for q in self.plan.workload},
            groupings=self.binding.groupings,
            given=given,
            live=self._live,
            dropped=dict(self._dropped),
            asked=self._asked,
            lives=dict(self._lives),
            held=dict(self._held),
            arrived=dict(arrived or {}),
            changes=tuple(changes),
        )
        write_plan(self._store, record)
        return record

    def _readers(self, layout: Layout, cut: int | None, before: Record | None) -> dict[str, Reader]:
        """What those who join with this plan see."""
        found: dict[str, Reader] = {}
        for tree in layout.current:
            for query in tree.queries:
                how = self._joining.get(query.name)
                if how is not None:
                    past = None if how == "now" else self._past(query, tree.grouping, how, before)
                    found[query.name] = past or Reader(cut, ())
        return found

    def _past(self, query: QueryLayout, grouping: Grouping, how: Joining, before: Record | None) -> Reader | None:
        """The kept slices that reach furthest back for this query, if some will do."""
        if before is None or before.watermark is None:
            return None
        layout = self.binding.layout
        reader = reach_back(query, grouping, layout, before.watermark, before.kept_from(layout))
        if reader is None or how == "state":
            return reader
        # What ended by the watermark was answered by the query that had this name before.
        opened = query.first_open(before.watermark)
        return replace(reader, since=opened if reader.since is None else max(reader.since, opened))

    def ever(self) -> set[str]:
        """The names of all queries that left."""
        with self._lock:
            return set(self._dropped)

    def changes(self) -> list[dict[str, Any]]:
        with self._lock:
            notes = plan_notes(self._store)
        return [
            {"batch": note.batch, **asdict(change), "older_trees": note.older_trees}
            for note in notes
            for change in note.changes
        ]

    def until(self, name: str) -> int | None:
        """The end of the query's life, once it has begun; None: it stays."""
        with self._lock:
            self._find([name])
            return self._lives[name].until if name in self._lives else None

    def since(self, name: str) -> int | None:
        """The begin of the first window that the query answers, once a batch has taken it up; None: it sees all."""
        with self._lock:
            reader = self._record.standing.readers.get(name)
            if reader is None or name in self._joining:
                raise CannotChange(f"no batch has taken up a query {name} yet")
        return reader.since


def _change(reason: str, cost_before: float | None, plan: Plan) -> Change:
    return Change(reason, cost_before, float(plan.cost), len(plan.workload), len(plan.trees))


def _flows(flow: float | None, before: float | None) -> str:
    """
    >>> _flows(31.4, 1.0), _flows(31.4, None), _flows(None, 1.0)
    (', in flows of 31.4 rows, not 1.0', ', in flows of 31.4 rows', '')
    """
    if flow is None:
        return ""
    return f", in flows of {flow:.1f} rows{'' if before is None else f', not {before:.1f}'}"


def lives_of(queries: Iterable[ACQ]) -> dict[str, Life]:
    return {q.name: q.life for q in queries if q.life is not None}


def lived(layout: Layout, lives: Mapping[str, Life]) -> Layout:
    """Queries give no window that ends after their life."""
    if not lives:
        return layout
    ends = {name: life.until for name, life in lives.items()}
    return layout.with_trees(
        lambda tree: replace(tree, queries=tuple(replace(q, until=ends.get(q.name)) for q in tree.queries))
    )


def _only(layout: Layout, names: Any) -> Layout:
    """The layout as if it had no other queries."""
    return layout.with_trees(lambda tree: replace(tree, queries=tuple(q for q in tree.queries if q.name in names)))


def _alike(one: Any, other: Any) -> bool:
    return [(f.name, f.type) for f in one] == [(f.name, f.type) for f in other]


def _columns(schema: Any) -> str:
    return "(" + ", ".join(f"{f.name} {f.type}" for f in schema) + ")"
