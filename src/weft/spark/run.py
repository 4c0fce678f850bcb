"""A running job, as users see it: its answers, its metrics, and its queries, which join and leave."""

from __future__ import annotations

import shutil
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming.query import StreamingQuery

from weft.model import ACQ, Ttl
from weft.plan import Plan
from weft.spark.adhoc import CHANGED_MEANWHILE, CannotAsk, StateMoved, ask
from weft.spark.checkpoint.checkpoint import Checkpoint
from weft.spark.checkpoint.files import CheckpointFiles
from weft.spark.errors import NotServed
from weft.spark.execution.metrics import BatchMetrics
from weft.spark.execution.progress import show_metrics, show_passes, show_trees
from weft.spark.execution.recovery import Outputs, start
from weft.spark.execution.stream_execution import StreamExecution
from weft.spark.execution.watermark import iso
from weft.spark.execution.woven import WovenQueries
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.queries.validate import CannotChange, Since
from weft.spark.sinks.base import AnswerListener, Sink
from weft.spark.sinks.side_output import SideOutput
from weft.spark.sinks.simple import MemorySink
from weft.sql import duration, parse
from weft.sql.inputs import Queries, read_queries
from weft.sql.ttl import ttl_length


class Run:
    """A running job, like a StreamingQuery."""

    def __init__(
        self,
        job: WovenQueries,
        sink: Sink,
        folder: str | None,
        trigger: str | None,
        available_now: bool,
        late_sink: SideOutput | None = None,
        listener: AnswerListener | None = None,
        corrupt_sink: SideOutput | None = None,
    ) -> None:
        self.job = job
        self.sink = sink
        self.started = time.time()
        interval = None if trigger is None or available_now else duration(trigger) / 1e6
        self._temporary = None if folder else tempfile.mkdtemp(prefix="weft-state-")
        self.checkpoint = Checkpoint(CheckpointFiles(folder or str(self._temporary)))
        with ExitStack() as undo:  # where starting fails
            undo.callback(self._forget)
            begun = start(job, self.checkpoint, Outputs(sink, late_sink, listener, corrupt_sink), interval, undo)
            self._driver = StreamExecution(job, begun, trigger, available_now)
            undo.pop_all()
        self._registry = begun.registry
        self.query: StreamingQuery = self._driver.query

    @property
    def active(self) -> bool:
        """Whether it still reads."""
        return self._driver.active

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the run to end; whether it has. An error of the stream is raised here."""
        return self._driver.wait(seconds)

    def stop(self) -> None:
        """End after the batch that runs; the checkpoint holds what is needed to go on."""
        self._driver.stop()
        self._forget()

    def drain(self) -> None:
        """The stream has ended: answer the windows that are still open, after backfills are complete.
        Nothing can be read afterwards, and no query can join.
        """
        self._driver.drain()
        self._forget()

    def _forget(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def answers(self) -> dict[str, pa.Table]:
        """What the memory sink holds."""
        if not isinstance(self.sink, MemorySink):
            raise NotServed('this run has another sink; start it with sink="memory", or read where it writes')
        return self.sink.tables()

    def queries(self) -> list[str]:
        """The names of the queries in the job, from the next batch on at the latest."""
        return [q.name for q in self._registry.plan.workload]

    def plan(self) -> Plan:
        """The plan of these queries, in use from the next batch on at the latest."""
        return self._registry.plan

    def add(
        self, queries: Queries, *, since: Since = "now", begin: str | None = None, for_: str | None = None
    ) -> list[str]:
        """Queries that join with the next batch, by name.

        `since="now"`: their first window is the first that begins after every row read so far. `since="state"`: the
        first that the kept slices can answer in full, where some tree has the slices; `run.since(name)` says which.
        `since="source"`: all that the source has, or windows from `begin='2026-01-01 00:00:00'` (UTC) on; the source is
        read again beside the job, and they answer when that is done.
        `for_="8 hours"`, or `FOR 8 HOURS` or `UNTIL '2026-01-01 00:00:00'` at the end of a query: it answers windows
        that end in this time, in event time from when it joins, and then leaves by itself.
        """
        parsed = self._read(queries)
        if for_ is not None:
            try:
                ttl = Ttl(length=ttl_length(for_))
            except ValueError as error:
                raise CannotChange(f'{error}; give a time such as for_="8 hours"') from None
            parsed = [replace(query, ttl=ttl) for query in parsed]
        return self._registry.add(parsed, since, _time(begin, since))

    def _read(self, queries: Queries) -> list[ACQ]:
        event_time = self.job.planner.options.event_time
        if isinstance(queries, str) and not queries.strip().endswith(".sql"):
            return list(parse(queries, event_time=event_time, name=self._free_name()))
        return list(read_queries(queries, event_time))

    def preview(self, queries: Queries) -> tuple[Plan, Plan]:
        """The plan as it is, and as it would be if the queries joined; the job does not change."""
        return self._registry.preview(self._read(queries))

    def drop(self, *names: str) -> None:
        """Queries that leave with the next batch; what they answered stays."""
        self._registry.drop(list(names))

    def replace(self, name: str, query: str) -> None:
        """Another query under the name of one that is there, from the next batch on.

        It goes on where the old one stops: windows that are open then are answered by the new one, as far as the kept
        slices have what it needs; `run.since(name)` says which is its first. Its answers must have the same columns.
        """
        parsed = parse(query, event_time=self.job.planner.options.event_time, name=name)
        if len(parsed) != 1 or parsed[0].name != name:
            raise CannotChange(
                f"one query named {name} can take its place, not {', '.join(q.name for q in parsed)}; "
                "leave CREATE VIEW out, or name it alike"
            )
        self._registry.replace(parsed[0])

    def ask(self, query: str) -> pa.Table:
        """Answer a query once, from the slices that the job keeps: every window whose slices are all kept and that the
        watermark has passed. `weave(retention="6 hours")` keeps more. Its keys may be some of another query's.
        """
        parsed = parse(query, event_time=self.job.planner.options.event_time, name="asked")
        if len(parsed) != 1:
            raise CannotAsk(f"one query is asked at a time, not {len(parsed)}")
        for _ in range(CHANGED_MEANWHILE):
            progress = self._driver.progress
            if progress.record.is_initial:
                raise CannotAsk("no slice is kept: no batch has been run yet")
            try:
                return ask(self.job.planner, parsed[0], progress.physical, self.checkpoint.state, progress.record)
            except StateMoved:
                continue
        raise CannotAsk("batches replace the kept slices faster than they can be read; ask again")

    def since(self, name: str) -> str | None:
        """The begin of the first window that the query answers; None: it was there from the start."""
        return iso(self._registry.since(name))

    def until(self, name: str) -> str | None:
        """The end of the query's TTL, in event time, once it has begun; None: it stays."""
        return iso(self._registry.until(name))

    def changes(self) -> list[dict[str, Any]]:
        """Every change of the plan: from which batch on, why, what the plan cost before and after in operations
        per second, and how many queries and trees it has.
        """
        return self._registry.changes()

    def _free_name(self) -> str:
        taken = {*self.queries(), *self._registry.former_names()}
        return next(name for n in count(1) if (name := f"q{n}") not in taken)

    @property
    def watermark(self) -> int | None:
        """In microseconds; None: no row has arrived yet, or every window is answered."""
        return self._driver.progress.watermark

    def batches(self) -> list[BatchMetrics]:
        """The latest batches, oldest first."""
        return list(self._driver.progress.batches)

    def trees(self) -> list[dict[str, Any]]:
        """What is kept of each tree, by a number that no other tree of the job ever has: different slices in the bucket
        that has the most, partials in all buckets, and bytes in the checkpoint. A tree of a former plan, which has no
        queries, is there until no open window needs it. Slices and partials are known from the first batch of this run
        on, and None before.
        """
        return show_trees(self._driver.progress)

    @property
    def physical(self) -> PhysicalPlan:
        """The plan that the latest batch ran by, with every decision."""
        return self._driver.progress.physical

    def passes(self) -> list[dict[str, Any]]:
        """What the latest batch aggregated rows to: the keys, filters and queries of each pass, and the keys of the
        phantom that it was rolled up from; None: from rows.
        """
        return show_passes(self.physical)

    def metrics(self) -> dict[str, Any]:
        """Where the run stands: counters from the start of the job, rates over its latest batches; plan changes and the
        seconds of each phase from the start of this run.
        """
        registry, progress = self._registry, self._driver.progress
        return show_metrics(
            progress, time.time(), registry.plan, registry.version, registry.backfilling(), registry.failed()
        )


def _time(text: str | None, since: Since) -> int | None:
    if text is None:
        return None
    if since != "source":
        raise CannotChange('begin is for since="source"; leave it out, or read the source again')
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError as error:
        raise CannotChange(f"begin: {error}; write it as '2026-01-01 00:00:00'") from None
    instant = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
