"""The rows that came before a query joined, read again from the source and aggregated beside the running job.

    replays/FOLDER/log/        Spark's own notes of how far the job had read when the query joined
    replays/FOLDER/partials/   the query's partials of all rows up to there
    replays/FOLDER/done.json   they are whole

A streaming query that finds such a note without a commit runs that batch again: from the begin of the source to exactly
there. The job goes on meanwhile, and keeps for the query what comes after. Each query that joins has a folder of its
own: one that was dropped may still be read for, and another of its name must not take that for its past.
"""

from __future__ import annotations

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
from weft.spark.partial.aggregate import sub_aggregate
from weft.spark.physical.backfilled import BackfilledPartials, backfill_column
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.physical.planner import Planner
from weft.spark.physical.rollup import Phantoms
from weft.spark.session import batch_settings


class CannotBackfill(RunError):
    """A source that does not give again what it gave."""


class Replays:
    """The past of queries that wait for it, a thread and a Spark query each."""

    def __init__(
        self,
        store: CheckpointFiles,
        planner: Planner,
        buckets: int,
        failed: Callable[[str, BackfillRecord, Exception], None],
    ) -> None:
        """`failed` is told in the replay's own thread."""
        self._store = store
        self._planner = planner
        self._buckets = buckets
        self._failed = failed
        self._readings: dict[str, Reading] = {}  # by folder

    def prepare(self, name: str, batch: int) -> str:
        """Write down how far the job has read: up to and with this batch of Spark's. Says where that is."""
        folder = f"{folder_name(name)}-{uuid.uuid4().hex[:8]}"
        here = self._store.at(f"replays/{folder}")
        here.write("log/offsets/0", self._store.read(f"spark/offsets/{batch}"))
        for file in self._store.names("spark/sources", recursive=True):
            if not file.rpartition("/")[2].startswith("."):
                here.write(f"log/sources/{file}", self._store.read(f"spark/sources/{file}"))
        return folder

    def begin(self, name: str, acq: ACQ, held: BackfillRecord, groupings: Sequence[tuple[str, ...]]) -> None:
        """Read the past of this query, unless that is being done or has been."""
        here = self._folder(name, held)
        if here.uri in self._readings or self.done(name, held):
            return
        reading = self._readings[here.uri] = Reading()
        arguments = (name, held, reading, self._bound(acq, groupings))
        reading.thread = threading.Thread(
            target=self._replay, args=arguments, name=f"weft-backfill-{name}", daemon=True
        )
        reading.thread.start()

    def done(self, name: str, held: BackfillRecord) -> bool:
        return self._folder(name, held).exists("done.json")

    def pool(self, acq: ACQ, number: int, groupings: Sequence[tuple[str, ...]]) -> TreeLayout:
        """The tree that holds the query's past."""
        (tree,) = self._bound(acq, groupings).layout.current
        return replace(tree, number=number, queries=(), begins=None)

    def replayed(
        self, name: str, acq: ACQ, held: BackfillRecord, feed: int, groupings: Sequence[tuple[str, ...]]
    ) -> BackfilledPartials:
        (layout,) = self._bound(acq, groupings).layout.feeds
        renamed = replace(
            layout,
            number=feed,
            key_columns=tuple(backfill_column(feed, c) for c in layout.key_columns),
            words=tuple(backfill_column(feed, c) for c in layout.words),
            columns=tuple(tuple(backfill_column(feed, c) for c in columns) for columns in layout.columns),
            trees=(self.pool(acq, held.pool, groupings),),
            replayed=True,
        )
        return BackfilledPartials(self._folder(name, held).path("partials"), renamed)

    def forget(self, name: str, held: BackfillRecord) -> None:
        """Its past was taken in, or nobody waits for it any more."""
        here = self._folder(name, held)
        reading = self._readings.pop(here.uri, None)
        if reading is None or not reading.give_up():
            here.clear()

    def forget_all_but(self, known: Mapping[str, BackfillRecord]) -> None:
        """Remove what a run that was killed left behind."""
        kept = {self._folder(name, held).uri for name, held in known.items()}
        for folder in {name.partition("/")[0] for name in self._store.names("replays", recursive=True)}:
            here = self._store.at(f"replays/{folder}")
            if here.uri not in kept:
                here.clear()

    def wait(self) -> None:
        for reading in list(self._readings.values()):
            reading.join()

    def stop(self) -> None:
        """No batch runs any more. What was not whole is read again by a restart, or by a drain."""
        for reading in list(self._readings.values()):
            reading.stopping.set()
        self.wait()
        self._readings.clear()

    def _folder(self, name: str, held: BackfillRecord) -> CheckpointFiles:
        return self._store.at(f"replays/{held.folder or folder_name(name)}")

    def _bound(self, acq: ACQ, groupings: Sequence[tuple[str, ...]]) -> PhysicalPlan:
        # What the job counts of its batches is no business of a thread beside them.
        return replace(self._planner, phantoms=Phantoms("never")).weave(Workload([acq]), groupings)[1]

    def _replay(self, name: str, held: BackfillRecord, reading: Reading, physical: PhysicalPlan) -> None:
        here = self._folder(name, held)
        try:
            self._read_again(here, held, reading, physical)
            if not self.done(name, held) and not reading.stopping.is_set():
                raise CannotBackfill("the source ended before what the job has read of it came again")
        except Exception as error:
            if not reading.stopping.is_set():
                self._failed(name, held, error)
        finally:
            if reading.end():
                here.clear()

    def _read_again(
        self, here: CheckpointFiles, held: BackfillRecord, reading: Reading, physical: PhysicalPlan
    ) -> None:
        trial = f"spark-{uuid.uuid4().hex[:8]}"  # what an earlier trial has committed must not count

        def aggregate(rows: DataFrame, batch: int) -> None:
            if batch > 0:  # what came after the query joined
                return
            if held.begin is not None:
                rows = rows.where(f"{physical.event_micros} >= {held.begin}L")
            with batch_settings(rows.sparkSession, self._buckets):
                partials = sub_aggregate(rows, physical, BucketMap(self._buckets))
                partials.write.mode("overwrite").parquet(here.path("partials"))
            here.sync()  # Spark makes nothing durable
            here.write_json("done.json", {})

        here.write_json(f"{trial}/metadata", {"id": str(uuid.uuid4())})  # Spark's name for a query of its own
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


class Reading:
    """One thread that reads a past."""

    def __init__(self) -> None:
        self.thread: threading.Thread | None = None
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._ended = False
        self._given_up = False

    def give_up(self) -> bool:
        """Nobody wants what it reads. Whether it will clear its folder itself: Spark may still write there."""
        with self._lock:
            self._given_up = not self._ended
            self.stopping.set()
            return self._given_up

    def end(self) -> bool:
        """Whether its folder is to be cleared."""
        with self._lock:
            self._ended = True
            return self._given_up

    def join(self) -> None:
        if self.thread is not None:
            self.thread.join()
