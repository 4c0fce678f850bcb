"""Backfills: the rows from before a query joined are read again from the source and aggregated beside the running job.

    replays/FOLDER/log/        Spark's offset log, up to where the job had read when the query joined
    replays/FOLDER/partials/   the query's partials of all rows up to there
    replays/FOLDER/done.json   they are complete

A streaming query that finds such an offset log without a commit runs that batch again: from the start of the source to
exactly there. Meanwhile the job continues and keeps later rows for the query. Each query that joins has its own folder:
the backfill of a dropped query may still run, and a new query of the same name must not use it.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from weft.engine import TreeLayout
from weft.model import ACQ, RunError, Workload
from weft.spark.checkpoint.bucket_map import BucketMap
from weft.spark.checkpoint.files import CheckpointFiles
from weft.spark.checkpoint.plan_log import BackfillRecord
from weft.spark.files import folder_name
from weft.spark.logs import log_event
from weft.spark.partial.aggregate import sub_aggregate
from weft.spark.physical.backfilled import BackfilledPartials, backfill_column
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.physical.planner import Planner
from weft.spark.session import batch_settings

logger = logging.getLogger(__name__)


class CannotBackfill(RunError):
    """A source that does not return the same rows again."""


class BackfillReader:
    """Runs backfills, each with its own thread and Spark query."""

    def __init__(
        self,
        store: CheckpointFiles,
        planner: Planner,
        buckets: int,
        failed: Callable[[str, BackfillRecord, Exception], None],
    ) -> None:
        """`failed` is called in the backfill's own thread."""
        self._store = store
        self._planner = planner
        self._buckets = buckets
        self._failed = failed
        self._threads: dict[str, BackfillThread] = {}  # by folder

    def prepare(self, name: str, batch: int) -> str:
        """Record how far the job has read, up to and including this batch of Spark's; returns the folder."""
        folder = f"{folder_name(name)}-{uuid.uuid4().hex[:8]}"
        here = self._store.at(f"replays/{folder}")
        here.write("log/offsets/0", self._store.read(f"spark/offsets/{batch}"))
        for file in self._store.names("spark/sources", recursive=True):
            if not file.rpartition("/")[2].startswith("."):
                here.write(f"log/sources/{file}", self._store.read(f"spark/sources/{file}"))
        return folder

    def begin(self, name: str, acq: ACQ, backfill: BackfillRecord, groupings: Sequence[tuple[str, ...]]) -> None:
        """Start the backfill of this query, unless it is running or complete."""
        here = self._folder(name, backfill)
        if here.uri in self._threads or self.is_complete(name, backfill):
            return
        log_event(logger, "backfill starts", query=name, begin=backfill.begin)
        reading = self._threads[here.uri] = BackfillThread()
        arguments = (name, backfill, reading, self._bound(acq, groupings))
        reading.thread = threading.Thread(
            target=self._backfill, args=arguments, name=f"weft-backfill-{name}", daemon=True
        )
        reading.thread.start()

    def is_complete(self, name: str, backfill: BackfillRecord) -> bool:
        return self._folder(name, backfill).exists("done.json")

    def pool(self, acq: ACQ, number: int, groupings: Sequence[tuple[str, ...]]) -> TreeLayout:
        """The tree that the query's backfill goes to."""
        (tree,) = self._bound(acq, groupings).layout.current
        return replace(tree, number=number, queries=(), begins=None)

    def partials(
        self, name: str, acq: ACQ, backfill: BackfillRecord, feed: int, groupings: Sequence[tuple[str, ...]]
    ) -> BackfilledPartials:
        (layout,) = self._bound(acq, groupings).layout.feeds
        renamed = replace(
            layout,
            number=feed,
            key_columns=tuple(backfill_column(feed, c) for c in layout.key_columns),
            words=tuple(backfill_column(feed, c) for c in layout.words),
            columns=tuple(tuple(backfill_column(feed, c) for c in columns) for columns in layout.columns),
            trees=(self.pool(acq, backfill.pool, groupings),),
            backfill=True,
        )
        return BackfilledPartials(self._folder(name, backfill).path("partials"), renamed)

    def forget(self, name: str, backfill: BackfillRecord) -> None:
        """A batch has taken it in, or the query has left."""
        here = self._folder(name, backfill)
        reading = self._threads.pop(here.uri, None)
        if reading is None or not reading.abandon():
            here.clear()

    def remove_all_but(self, current: Mapping[str, BackfillRecord]) -> None:
        """Remove what a killed run left behind."""
        kept = {self._folder(name, backfill).uri for name, backfill in current.items()}
        for folder in {name.partition("/")[0] for name in self._store.names("replays", recursive=True)}:
            here = self._store.at(f"replays/{folder}")
            if here.uri not in kept:
                here.clear()

    def wait(self) -> None:
        for reading in list(self._threads.values()):
            reading.join()

    def stop(self) -> None:
        """No batch runs any more. An incomplete backfill is started again by a restart, or by a drain."""
        for reading in list(self._threads.values()):
            reading.stopping.set()
        self.wait()
        self._threads.clear()

    def _folder(self, name: str, backfill: BackfillRecord) -> CheckpointFiles:
        return self._store.at(f"replays/{backfill.folder or folder_name(name)}")

    def _bound(self, acq: ACQ, groupings: Sequence[tuple[str, ...]]) -> PhysicalPlan:
        # Statistics of the batches do not concern a thread beside them.
        alone = self._planner.with_options(phantoms="never", groupings="native")
        return alone.plan(Workload([acq]), groupings=groupings)

    def _backfill(self, name: str, backfill: BackfillRecord, reading: BackfillThread, physical: PhysicalPlan) -> None:
        here = self._folder(name, backfill)
        try:
            self._read_again(here, backfill, reading, physical)
            if not self.is_complete(name, backfill) and not reading.stopping.is_set():
                raise CannotBackfill("the source ended before it returned all rows that the job has read")
            log_event(logger, "backfill stops" if reading.stopping.is_set() else "backfill is complete", query=name)
        except Exception as error:
            if not reading.stopping.is_set():
                log_event(logger, "backfill fails", level=logging.WARNING, query=name, error=repr(error))
                self._failed(name, backfill, error)
        finally:
            if reading.end():
                here.clear()

    def _read_again(
        self, here: CheckpointFiles, backfill: BackfillRecord, reading: BackfillThread, physical: PhysicalPlan
    ) -> None:
        trial = f"spark-{uuid.uuid4().hex[:8]}"  # commits of an earlier attempt must not count

        def aggregate(rows: DataFrame, batch: int) -> None:
            if batch > 0:  # rows after the query joined
                return
            if backfill.begin is not None:
                rows = rows.where(f"{physical.event_micros} >= {backfill.begin}L")
            with batch_settings(rows.sparkSession, self._buckets):
                partials = sub_aggregate(rows, physical, BucketMap(self._buckets))
                partials.write.mode("overwrite").parquet(here.path("partials"))
            here.sync()  # Spark makes nothing durable
            here.write_json("done.json", {})

        here.write_json(f"{trial}/metadata", {"id": str(uuid.uuid4())})  # Spark's id of a separate query
        for file in here.names("log", recursive=True):
            here.write(f"{trial}/{file}", here.read(f"log/{file}"))
        query = (
            self._planner.stream.writeStream.foreachBatch(aggregate)
            .option("checkpointLocation", f"{here.uri}/{trial}")
            .trigger(availableNow=True)
            .start()
        )
        while not reading.stopping.is_set() and not query.awaitTermination(0.2):
            if here.exists("done.json"):
                break
        query.stop()


class BackfillThread:
    """The thread of one backfill."""

    def __init__(self) -> None:
        self.thread: threading.Thread | None = None
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._ended = False
        self._abandoned = False

    def abandon(self) -> bool:
        """Its result is not needed. Returns whether it clears its folder itself: Spark may still write there."""
        with self._lock:
            self._abandoned = not self._ended
            self.stopping.set()
            return self._abandoned

    def end(self) -> bool:
        """Whether its folder must be cleared."""
        with self._lock:
            self._ended = True
            return self._abandoned

    def join(self) -> None:
        if self.thread is not None:
            self.thread.join()
