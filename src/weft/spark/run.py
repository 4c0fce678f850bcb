"""What users hold of a job that runs: its answers, its metrics, and its queries as they come and go."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from weft.engine import FOREVER
from weft.model import ACQ, Life, WeftError
from weft.optimizer import Stream
from weft.plan import Plan
from weft.schedule import Schedule
from weft.spark.aside import AsideRows
from weft.spark.ask import CHANGED_MEANWHILE, CannotAsk, StateMoved, ask
from weft.spark.bind import Binding
from weft.spark.blame import blame
from weft.spark.changing import CannotChange, Since
from weft.spark.checkpoint import FIRST_PLACES, Checkpoint, CheckpointMismatch, Record
from weft.spark.failing import RunFailed, failure, is_full
from weft.spark.live import Live
from weft.spark.moving import move
from weft.spark.notes import SparkNotes
from weft.spark.observing import Observer
from weft.spark.pipeline import BatchMetrics, Pipeline, TreeState
from weft.spark.places import Places
from weft.spark.refreshes import refreshed
from weft.spark.session import batch_settings
from weft.spark.sink import JobSink, MemorySink, RepeatedSink, Sink
from weft.spark.store import Store
from weft.spark.tap import Tap
from weft.spark.weighing import weigh
from weft.sql import duration, parse
from weft.sql.life import lifetime
from weft.sql.read import Queries, read_queries

if TYPE_CHECKING:
    from weft.spark.job import Job

CHECKPOINT_VERSION = 3

class NotServed(WeftError):
    """Something that this job cannot do."""


class Run:
    """A running job, like a StreamingQuery."""

    def __init__(
        self,
        job: Job,
        sink: Sink,
        folder: str | None,
        trigger: str | None,
        available_now: bool,
        late_sink: AsideRows | None = None,
        tap: Tap | None = None,
        bad_sink: AsideRows | None = None,
    ) -> None:
        self.job = job
        self.sink = sink
        self.started = time.time()
        self._temporary = None if folder else tempfile.mkdtemp(prefix="weft-state-")
        self.checkpoint = Checkpoint(Store(folder or str(self._temporary)))
        times = job.weaver.times
        self.checkpoint.agree({"version": CHECKPOINT_VERSION, **times.agreed()})
        self._record = self.checkpoint.newest()
        self.checkpoint.verify(self._record)
        self.checkpoint.repair(self._record)
        self._notes = SparkNotes(self.checkpoint.store)
        self._notes.mend(-1 if self._record is None else self._record.batch - self._record.apart)
        places, places_file = self.checkpoint.places(self._record)
        buckets = job.buckets or (job.cores if places is None else places.buckets)
        weaver = replace(job.weaver, buckets=buckets)
        bound = job.binding if job.weaver.buckets == buckets else weaver.bind(job.plan, ())
        self._live = Live(weaver, job.plan, bound, self.checkpoint.store, sink.open, buckets)
        following = 0 if self._record is None else self._record.batch + 1
        binding = self._live.take_up(following, self._record)
        if isinstance(sink, RepeatedSink) and (binding.homes or (places is not None and places.buckets != buckets)):
            sink.undo(following)
        if places is not None and places.buckets != buckets:
            places, places_file = None, ""
            if self._record is not None:
                self._record = move(job.stream.sparkSession, self.checkpoint, self._record, binding, buckets)
                places, places_file = self.checkpoint.places(self._record)
        self._placed = places is not None
        limit, epoch = job.weaver.synopsis_limit, uuid.uuid4().hex
        self._pipeline = Pipeline(
            binding, places or Places(buckets), times, sink, self.checkpoint, late_sink, tap, bad_sink, limit, epoch,
            interval=None if trigger is None or available_now else duration(trigger) / 1e6,
            places_file=places_file,
        )  # fmt: skip
        self._observer = Observer(Stream())
        self._binding = binding  # that the state of the record goes by
        self._history: deque[BatchMetrics] = deque(maxlen=1000)
        self._spent: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._busy = threading.Lock()
        self._failure: Exception | None = None
        if isinstance(sink, JobSink):
            sink.begin(self.checkpoint.identity())
        sink.open(binding.layout)
        writer = (
            job.stream.writeStream.foreachBatch(self._batch)
            .queryName(f"weft-{uuid.uuid4().hex[:8]}")
            .option("checkpointLocation", f"{self.checkpoint.store.uri.rstrip('/')}/spark")
        )
        if available_now:
            writer = writer.trigger(availableNow=True)
        elif trigger is not None:
            writer = writer.trigger(processingTime=trigger)
        self.query: StreamingQuery = _begun(writer)
        self._rows_came = time.monotonic()
        if times.idle_timeout is not None:
            threading.Thread(target=self._go_on_when_idle, args=(times.idle_timeout / 1e6,), daemon=True).start()

    def _batch(self, rows: DataFrame, batch: int) -> None:
        with self._busy:
            self._run_batch(rows, batch)

    def _run_batch(self, rows: DataFrame, number: int) -> None:
        """Spark repeats a batch whose commit it missed; one that has a record is done already.

        weft numbers batches on where Spark does not, when it runs some without rows.
        """
        before = self._record
        last, apart = (-1, 0) if before is None else (before.batch, before.apart)
        batch = number + apart
        self._notes.make_durable()
        read = self._notes.rows(number)
        if batch == last:
            if before is not None and before.read not in ("", read):
                raise CheckpointMismatch(
                    f"{self.checkpoint.store.path(f'spark/offsets/{number}')} names other rows than batch {number} had "
                    "when it was done: some would be in no answer, or in two; bring it back from a copy, or start with "
                    "an empty checkpoint folder"
                )
            return
        if batch != last + 1:
            raise CheckpointMismatch(
                f"Spark goes on with batch {number}, but the records of the checkpoint {self.checkpoint.store.uri} end "
                f"with {f'batch {last - apart}' if last >= 0 else 'none'}: files were removed from its folder spark or "
                "batches; bring them back, or start with an empty checkpoint folder"
            )
        try:
            run = self._attempt(batch, before, lambda pipeline: pipeline.run_batch(rows, batch, before, read), rows)
        except Exception as error:
            self._failure = error  # Spark passes on only its text
            raise
        self._done(*run)
        if run[1].rows:
            self._rows_came = time.monotonic()

    def _place(self, rows: DataFrame, binding: Binding) -> None:
        """Before the first batch: which bucket each group is in, written down, as the batch may be repeated."""
        buckets = self._pipeline.places.buckets
        with batch_settings(rows.sparkSession, buckets):
            places = weigh(rows, binding, buckets)
        name = self.checkpoint.write_places(places, FIRST_PLACES)
        self._pipeline = replace(self._pipeline, places=places, places_file=name)
        self._placed = True

    def _attempt(
        self,
        batch: int,
        before: Record | None,
        run: Callable[[Pipeline], tuple[Record, BatchMetrics]],
        rows: DataFrame | None = None,
    ) -> tuple[Record, BatchMetrics]:
        """Run a batch by the newest plan; once more without the queries that it fails for, if there are others."""
        while True:
            binding = self._live.take_up(batch, before)
            self._pipeline = replace(self._pipeline, binding=binding)
            try:
                if rows is not None and not self._placed:
                    self._place(rows, binding)
                return run(self._pipeline)
            except Exception as error:
                present = self._live.plan.workload.by_name
                queries = [present[q.name] for q in binding.layout.queries if q.name in present]
                if not self._live.expel(blame(error, rows, queries, self.job.weaver)):
                    raise
                # Some buckets may have run it: what their workers remember of that is of another plan.
                self._pipeline = replace(self._pipeline, epoch=uuid.uuid4().hex)
                if isinstance(self.sink, RepeatedSink):
                    self.sink.undo(batch)

    def _done(self, record: Record, metrics: BatchMetrics) -> None:
        with self._lock:
            self._record, self._binding = record, self._pipeline.binding
            self._history.append(metrics)
            self._spent.update(metrics.phases)
        if self._pipeline.binding.replayed:
            self._live.committed()
        phantoms = self._pipeline.binding.phantoms
        self._live.tell_of_phantoms(phantoms.told, phantoms.flow)
        self._live.weigh_classes()
        seen = self._observer.take(metrics)
        if seen is not None:
            self._live.observe(seen)

    def _go_on_when_idle(self, timeout: float) -> None:
        """In a thread of its own: while no row comes the watermark follows the clock, as long as windows are open."""
        looked = time.monotonic()
        while self.active:
            now = time.monotonic()
            if now - max(looked, self._rows_came) < timeout:
                time.sleep(min(timeout / 4, 0.5))
                continue
            looked = now
            try:
                with self._busy:
                    if self.active and time.monotonic() - self._rows_came >= timeout:
                        self._answer_idle(time.monotonic() - self._rows_came)
            except Exception as error:
                self._failure = error  # whoever waits is told
                self.query.stop()

    def _answer_idle(self, quiet: float) -> None:
        before = self._record
        if before is None or before.latest is None or before.watermark is None or before.drained:
            return
        due = before.latest - self.job.weaver.times.delay + int(quiet * 1e6)
        binding = self._live.take_up(before.batch + 1, before)
        opened = replace(binding.layout, lateness=0, retain=0).horizons(before.watermark)
        if due > before.watermark and any(before.newest.get(n, -FOREVER) >= first for n, first in opened.items()):
            self._done(*self._run_idle(before, due))

    def _run_idle(self, before: Record, watermark: int) -> tuple[Record, BatchMetrics]:
        spark = self.job.stream.sparkSession
        return self._attempt(before.batch + 1, before, lambda pipeline: pipeline.run_idle(spark, before, watermark))

    @property
    def active(self) -> bool:
        """Whether it still reads."""
        return bool(self.query.isActive)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the run to end; whether it has. An error of the stream is raised here."""
        try:
            ended = self.query.awaitTermination(None if seconds is None else seconds)
        except StreamingQueryException as error:
            raise RunFailed(failure(self._failure or error)) from error
        if self._failure is not None:  # between two batches of Spark, which knows nothing of it
            raise RunFailed(failure(self._failure)) from self._failure
        return True if ended is None else bool(ended)

    def stop(self) -> None:
        """End after the batch that runs; the checkpoint holds what is needed to go on."""
        # Held no longer than that: Spark's stop waits for a batch that has just begun, and that one for the lock.
        with self._busy:
            pass
        self.query.stop()
        self._live.replays.stop()
        self._live.wait_for_plan()
        self._forget()

    def drain(self) -> None:
        """The stream has ended: answer the windows that are still open. Nothing can be read afterwards."""
        if self.query.isActive:
            self.query.processAllAvailable()
            self.query.stop()
        self._live.replays.wait()
        self._live.wait_for_plan()
        error = self._failure or self.query.exception()
        if error is not None:
            raise RunFailed(failure(error))
        record = self.checkpoint.newest()
        if record is not None and not record.drained:
            # Whoever joined with the last batch has answered by now what was open to it then.
            try:
                self._done(*self._run_idle(record, FOREVER))
            except PySparkException as failed:
                raise RunFailed(failure(failed)) from failed
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
        """Who is in the job, from the next batch on at the latest."""
        return [q.name for q in self._live.plan.workload]

    def plan(self) -> Plan:
        """The plan of these queries, which holds from the next batch on at the latest."""
        return self._live.plan

    def add(
        self, queries: Queries, *, since: Since = "now", begin: str | None = None, for_: str | None = None
    ) -> list[str]:
        """Queries that join with the next batch, by name.

        `since="now"`: their first window is the first that begins after every row seen so far. `since="state"`: the
        first that the kept slices can answer in full, where some tree has the slices; `run.since(name)` says which.
        `since="source"`: all that the source has, or windows from `begin='2026-01-01 00:00:00'` (UTC) on; the source is
        read again beside the job, and they answer when that is done.
        `for_="8 hours"`, or `FOR 8 HOURS` or `UNTIL '2026-01-01 00:00:00'` at the end of a query: it answers windows
        that end in this time, in event time from when it joins, and then leaves by itself.
        """
        found = self._read(queries)
        if for_ is not None:
            try:
                life = Life(length=lifetime(for_))
            except ValueError as error:
                raise CannotChange(f'{error}; give a time such as for_="8 hours"') from None
            found = [replace(query, life=life) for query in found]
        return self._live.add(found, since, _time(begin, since))

    def _read(self, queries: Queries) -> list[ACQ]:
        event_time = self.job.weaver.event_time
        if isinstance(queries, str) and not queries.strip().endswith(".sql"):
            return list(parse(queries, event_time=event_time, name=self._free_name()))
        return list(read_queries(queries, event_time))

    def preview(self, queries: Queries) -> tuple[Plan, Plan]:
        """The plan as it is, and as it would be if the queries joined; the job goes on as it was."""
        return self._live.preview(self._read(queries))

    def drop(self, *names: str) -> None:
        """Queries that leave with the next batch; what they answered stays."""
        self._live.drop(list(names))

    def replace(self, name: str, query: str) -> None:
        """Another query under the name of one that is there, from the next batch on.

        It goes on where the old one stops: windows that are open then are answered by the new one, as far as the kept
        slices have what it needs; `run.since(name)` says which is its first. Its answers must have the same columns.
        """
        found = parse(query, event_time=self.job.weaver.event_time, name=name)
        if len(found) != 1 or found[0].name != name:
            raise CannotChange(
                f"one query named {name} can take its place, not {', '.join(q.name for q in found)}; "
                "leave CREATE VIEW out, or name it alike"
            )
        self._live.replace(found[0])

    def ask(self, query: str) -> pa.Table:
        """Answer a query once, from the slices that the job keeps: every window that they hold whole and that the
        watermark has passed. `weave(retain="6 hours")` keeps more. Its keys may be some of another query's.
        """
        found = parse(query, event_time=self.job.weaver.event_time, name="asked")
        if len(found) != 1:
            raise CannotAsk(f"one query is asked at a time, not {len(found)}")
        for _ in range(CHANGED_MEANWHILE):
            with self._lock:
                record, binding = self._record, self._binding
            if record is None:
                raise CannotAsk("no slice is kept: no batch has been run yet")
            try:
                return ask(self.job.weaver, found[0], binding, self.checkpoint, record)
            except StateMoved:
                continue
        raise CannotAsk("batches replace the kept slices faster than they can be read; ask again")

    def since(self, name: str) -> str | None:
        """The begin of the first window that the query answers; None: it was there from the start."""
        begin = self._live.since(name)
        return None if begin is None else _iso(begin)

    def until(self, name: str) -> str | None:
        """The end of the query's life, in event time, once it has begun; None: it stays."""
        end = self._live.until(name)
        return None if end is None else _iso(end)

    def changes(self) -> list[dict[str, Any]]:
        """Every change of the plan: from which batch on, why, what the plan cost before and after in operations a
        second, and how many queries and trees it has.
        """
        return self._live.changes()

    def _free_name(self) -> str:
        taken = {*self.queries(), *self._live.ever()}
        return next(name for n in count(1) if (name := f"q{n}") not in taken)

    @property
    def watermark(self) -> int | None:
        """In microseconds; None: no row has come yet, or every window is answered."""
        with self._lock:
            return _watermark(self._record)

    def batches(self) -> list[BatchMetrics]:
        """The latest batches, oldest first."""
        with self._lock:
            return list(self._history)

    def trees(self) -> list[dict[str, Any]]:
        """What is kept of each tree, by a number that no other tree of the job ever has: different slices in the bucket
        that has the most, partials in all buckets, and bytes in the checkpoint. A tree of a former plan, which has no
        queries, is there until no open window needs it. Slices and partials are known from the first batch of this run
        on, and None before.
        """
        with self._lock:
            record, last = self._record, self._history[-1] if self._history else None
            layout = self._binding.layout
        sizes = {} if record is None else record.kept_bytes()
        kept = {} if last is None else last.trees
        empty = None if last is None else TreeState(0, 0)
        return [
            {
                "tree": tree.number,
                "queries": [query.name for query in tree.queries],
                "slices": None if (state := kept.get(tree.number, empty)) is None else state.slices,
                "partials": None if state is None else state.partials,
                "state_bytes": sizes.get(tree.number, 0),
            }
            for tree in layout.trees
        ]

    def passes(self) -> list[dict[str, Any]]:
        """What the latest batch aggregated rows to: the keys, filters and queries of each pass, and the keys of the
        phantom that it was rolled up from; None: from rows.
        """
        with self._lock:
            binding = self._binding
        return [
            {
                "keys": list(feed.keys.values()),
                "filters": list(feed.signature.filters),
                "queries": [query.name for tree in feed.layout.trees for query in tree.queries],
                "phantom": None if table is None else sorted(table),
            }
            for feed, table in zip(binding.feeds, binding.phantoms.above(binding.feeds), strict=True)
        ]

    def metrics(self) -> dict[str, Any]:
        """Where the run stands: counters from the start of the job, rates over its latest batches; plan changes and the
        seconds of each phase from the start of this run.
        """
        with self._lock:
            record, recent, spent = self._record, list(self._history)[-10:], dict(self._spent)
            layout = self._binding.layout
        schedule, mark = (Schedule(), None) if record is None else (record.schedule, _watermark(record))
        busy = sum(m.seconds for m in recent) or None
        latest = None if record is None else record.latest
        return {
            "batch": None if record is None else record.batch,
            "rows": 0 if record is None else record.rows,
            "rows_per_second": sum(m.rows for m in recent) / busy if busy else 0.0,
            "watermark": None if mark is None else _iso(mark),
            "lag_seconds": None if latest is None else max(0.0, time.time() - latest / 1e6),
            "answers": 0 if record is None else sum(record.answers.values()),
            "answers_per_second": sum(m.answers for m in recent) / busy if busy else 0.0,
            "late": 0 if record is None else sum(record.late.values()),
            "bad": 0 if record is None else record.bad,
            "late_by_query": {} if record is None else dict(record.late),
            "answers_by_query": {} if record is None else dict(record.answers),
            "matched_by_query": {} if record is None else dict(record.matched),
            "state_bytes_written": 0 if record is None else record.state_bytes,
            "synopsis_bytes": recent[-1].synopsis_bytes if recent else 0,
            "refreshes_by_query": refreshed(layout, schedule, mark),
            "refreshes": sum(schedule.refreshes.values()),
            "refreshes_per_second": sum(m.refreshes for m in recent) / busy if busy else 0.0,
            "refresh_runs": schedule.runs,
            "refresh_shared_runs": schedule.shared_runs,
            "waiting": self._live.waiting(),
            "failed": self._live.failed(),
            "queries": len(self._live.plan.workload),
            "trees": len(self._live.plan.trees),
            "plan_changes": self._live.version,
            "seconds_by_phase": spent,
        }


def _begun(writer: DataStreamWriter) -> StreamingQuery:
    try:
        return writer.start()
    except Exception as error:
        if is_full(error):  # Spark's first note is written here
            raise RunFailed(failure(error)) from error
        raise


def _watermark(record: Record | None) -> int | None:
    return None if record is None or record.watermark == FOREVER else record.watermark


def _time(text: str | None, since: Since) -> int | None:
    if text is None:
        return None
    if since != "source":
        raise CannotChange('begin is for since="source"; leave it out, or read the source again')
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise CannotChange(f"begin: {error}; write it as '2026-01-01 00:00:00'") from None
    instant = found if found.tzinfo else found.replace(tzinfo=UTC)
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def iso(micros: int | None) -> str | None:
    """A time in ISO 8601; none for none, and for the end of time."""
    return None if micros in (None, FOREVER) else _iso(micros)


def _iso(micros: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(micros // 1_000_000)) + f".{micros % 1_000_000:06d}Z"
