"""The rows that came before a query joined, read again from the source and aggregated beside the running job.

    replays/NAME/log/        Spark's own notes of how far the job had read when the query joined
    replays/NAME/partials/   the query's partials of all rows up to there
    replays/NAME/done.json   they are whole

A streaming query that finds such a note without a commit runs that batch again: from the begin of the source to exactly
there. The job goes on meanwhile, and keeps for the query what comes after.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.engine import FeedLayout, Layout, TreeLayout
from weft.model import ACQ, WeftError, Workload
from weft.spark.bind import Binding
from weft.spark.places import Places, group_hash
from weft.spark.session import batch_settings
from weft.spark.sink import folder_of
from weft.spark.store import Store
from weft.spark.sub_aggregate import sub_aggregate
from weft.spark.weaver import Weaver


class CannotReplay(WeftError):
    """A source that does not give again what it gave."""


@dataclass(frozen=True, slots=True)
class Held:
    """A query that waits for its past."""

    pool: int
    """The tree that the replayed partials go to."""
    begin: int | None
    """Rows before it are left out; None: none are."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """Partials of the past that join a batch: where they lie, and what they are."""

    folder: str
    feed: FeedLayout

    def read(self, spark: SparkSession, places: Places) -> DataFrame:
        """(bucket, feed, slice, latest, and the other columns under names that no other feed has)

        The job may have other buckets than when they were written.
        """
        partials = spark.read.parquet(self.folder)
        own = {c: _named(self.feed.number, c) for c in partials.columns if c not in ("bucket", "slice", "latest")}
        bucket = F.expr(places.bucket(group_hash(self.feed.key_columns)))
        named = partials.withColumnsRenamed(own).drop(own["feed"])
        return named.withColumn("feed", F.lit(self.feed.number)).withColumn("bucket", bucket)

    def into(self, layout: Layout) -> Layout:
        """The layout of the batch that takes them in."""
        numbers = {tree.number for tree in self.feed.trees}
        older = tuple(tree for tree in layout.older if tree.number not in numbers)
        return replace(layout, feeds=(*layout.feeds, self.feed), older=older)


class Replays:
    """The past of queries that wait for it, a thread and a Spark query each."""

    def __init__(self, store: Store, weaver: Weaver, buckets: int, failed: Callable[[str, Exception], None]) -> None:
        """`failed` is told in the replay's own thread."""
        self._store = store
        self._weaver = weaver
        self._buckets = buckets
        self._failed = failed
        self._threads: dict[str, threading.Thread] = {}
        self._stopping = threading.Event()

    def prepare(self, name: str, batch: int) -> None:
        """Write down how far the job has read: up to and with this batch of Spark's."""
        here = self._folder(name)
        here.clear()
        here.write("log/offsets/0", self._store.read(f"spark/offsets/{batch}"))
        for file in self._store.names("spark/sources", recursive=True):
            if not file.rpartition("/")[2].startswith("."):
                here.write(f"log/sources/{file}", self._store.read(f"spark/sources/{file}"))

    def begin(self, name: str, acq: ACQ, held: Held, groupings: Sequence[tuple[str, ...]]) -> None:
        """Read the past of this query, unless that is being done or has been."""
        if name in self._threads or self.done(name):
            return
        thread = threading.Thread(target=self._replay, args=(name, self._bound(acq, groupings), held), daemon=True)
        self._threads[name] = thread
        thread.start()

    def done(self, name: str) -> bool:
        return self._folder(name).exists("done.json")

    def pool(self, acq: ACQ, number: int, groupings: Sequence[tuple[str, ...]]) -> TreeLayout:
        """The tree that holds the query's past."""
        (tree,) = self._bound(acq, groupings).layout.current
        return replace(tree, number=number, queries=(), begins=None)

    def replayed(self, name: str, acq: ACQ, held: Held, feed: int, groupings: Sequence[tuple[str, ...]]) -> Replayed:
        (layout,) = self._bound(acq, groupings).layout.feeds
        renamed = replace(
            layout,
            number=feed,
            key_columns=tuple(_named(feed, c) for c in layout.key_columns),
            words=tuple(_named(feed, c) for c in layout.words),
            columns=tuple(tuple(_named(feed, c) for c in columns) for columns in layout.columns),
            trees=(self.pool(acq, held.pool, groupings),),
            replayed=True,
        )
        return Replayed(self._folder(name).path("partials"), renamed)

    def forget(self, name: str) -> None:
        self._threads.pop(name, None)
        self._folder(name).clear()

    def wait(self) -> None:
        for thread in list(self._threads.values()):
            thread.join()

    def stop(self) -> None:
        """A restart reads again what was not whole."""
        self._stopping.set()
        self.wait()

    def _folder(self, name: str) -> Store:
        return self._store.at(f"replays/{folder_of(name)}")

    def _bound(self, acq: ACQ, groupings: Sequence[tuple[str, ...]]) -> Binding:
        return self._weaver.weave(Workload([acq]), groupings)[1]

    def _replay(self, name: str, binding: Binding, held: Held) -> None:
        here = self._folder(name)
        trial = f"spark-{uuid.uuid4().hex[:8]}"  # what an earlier trial has committed must not count
        stream = self._weaver.stream

        def aggregate(rows: DataFrame, batch: int) -> None:
            if batch > 0:  # what came after the query joined
                return
            if held.begin is not None:
                rows = rows.where(f"{binding.event_micros} >= {held.begin}L")
            with batch_settings(rows.sparkSession, self._buckets):
                partials = sub_aggregate(rows, binding, Places(self._buckets))
                partials.write.mode("overwrite").parquet(here.path("partials"))
            here.write_json("done.json", {})

        try:
            here.write_json(f"{trial}/metadata", {"id": str(uuid.uuid4())})  # Spark's name for a query of its own
            for file in here.names("log", recursive=True):
                here.write(f"{trial}/{file}", here.read(f"log/{file}"))
            query = (
                stream.writeStream.foreachBatch(aggregate)
                .option("checkpointLocation", f"{here.uri}/{trial}")
                .trigger(availableNow=True)
                .start()
            )
            while not self._stopping.is_set() and not query.awaitTermination(0.2):
                if self.done(name):
                    break
            query.stop()
            if not self.done(name) and not self._stopping.is_set():
                raise CannotReplay("the source ended before what the job has read of it came again")
        except Exception as error:
            self._failed(name, error)


def _named(feed: int, column: str) -> str:
    return f"r{feed}_{column}"
