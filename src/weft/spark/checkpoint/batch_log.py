"""The checkpoint: which batches are done, and where each bucket's state lies.

job.json              watermark and lateness: a restart must agree
identity.json         a name of the job, for sinks that note which batch of which job they have
plans/00000005.json   the plan from batch 5 on (see `plans`)
asked/00000003.json   a change that is in no plan yet (see `asked`)
batches/00000007.json the record of a batch, written last: it alone makes the batch count; it names every segment of
                      the state, or those that came and went since the record before
places/first.json     which bucket each share of the groups is in (see `places`); others after state was moved
segments/...          what each bucket added to its state, a file a batch, merged in passing
spark/                Spark's own offsets and commits (see `notes`)
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from weft.engine import Layout, State
from weft.model import CheckpointError
from weft.schedule import Schedule
from weft.spark.checkpoint.bucket_map import BucketMap
from weft.spark.checkpoint.files import CheckpointFiles

CHECKPOINT_VERSION = 3
"""Of what is written here: a restart reads its own alone."""

FIRST_PLACES = "places/first.json"

FAN_IN = 8
"""So many segments of one level are merged into one of the next: a partial is rewritten once a level."""

LARGE = 1 << 20
"""Bytes from which segments are no longer merged: how often a partial is rewritten depends on the batch alone."""


class CheckpointMismatch(CheckpointError):
    """A checkpoint of another job."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The partials that the batches `first..last` added to a bucket: tree -> (offset, length, newest slice)."""

    path: str
    first: int
    last: int
    level: int
    parts: Mapping[str, tuple[int, int, int]]
    bytes: int


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """A finished batch. Counters run from the start of the job."""

    batch: int
    watermark: int | None = None
    latest: int | None = None
    segments: Mapping[str, tuple[Segment, ...]] = field(default_factory=dict)
    rows: int = 0
    answers: Mapping[str, int] = field(default_factory=dict)
    late: Mapping[str, int] = field(default_factory=dict)
    matched: Mapping[str, int] = field(default_factory=dict)
    """Rows that passed each query's filter; earlier versions did not count them."""
    bad: int = 0
    """Records that could not be read, and were set aside."""
    state_bytes: int = 0
    """Bytes of state that this batch wrote."""
    drained: bool = False
    apart: int = 0
    """How many batches Spark knows nothing of: those without rows, while the stream was idle or at its end."""
    kept: Mapping[int, int] = field(default_factory=dict)
    """From which slice on each tree has all that came to it (see `engine.succession`)."""
    schedule: Schedule = field(default_factory=Schedule)
    """Of the queries that are answered at most so often: when each was, and what the next batch may spend."""
    changes: int = 0
    """Segments that were named since the last record that names them all; 0: it is this one."""
    read: str = ""
    """What stands for the rows that the batch read (see `notes`); earlier versions did not say."""
    places: str = ""
    """The file that says which bucket a group is in; none: groups were hashed to as many as there are."""

    @property
    def newest(self) -> dict[int, int]:
        """The newest slice that the state holds of each tree."""
        found: dict[int, int] = {}
        for segments in self.segments.values():
            for segment in segments:
                for tree, (_, _, newest) in segment.parts.items():
                    found[int(tree)] = max(newest, found.get(int(tree), newest))
        return found

    def kept_from(self, layout: Layout) -> Mapping[int, int]:
        """`kept`, or, of a record of an earlier version, what the layout says must be kept."""
        return self.kept or ({} if self.watermark is None else layout.horizons(self.watermark))

    def kept_bytes(self) -> dict[int, int]:
        """Bytes of state in the checkpoint, by tree."""
        sizes: Counter[int] = Counter()
        for segments in self.segments.values():
            for segment in segments:
                sizes.update({int(tree): length for tree, (_, length, _) in segment.parts.items()})
        return dict(sizes)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    store: CheckpointFiles

    def agree(self, job: Mapping[str, Any]) -> None:
        """Write down what is woven, or compare it with what was."""
        if not self.store.exists("job.json"):
            self.store.write_json("job.json", job)
            return
        before = self.store.read_json("job.json")
        if before.get("version") != job["version"]:
            raise CheckpointMismatch(
                f"the checkpoint {self.store.uri} has format {before.get('version')}, not {job['version']}; "
                "finish it with the version that made it, or start with an empty checkpoint folder"
            )
        for what, new in job.items():
            old = before.get(what, 0)  # what an earlier version did not know of was nothing
            if old != new:
                raise CheckpointMismatch(
                    f"the checkpoint {self.store.uri} was made with {what} {old!r}, not {new!r}; "
                    "start with an empty checkpoint folder, or with the setting that it was made with"
                )

    def identity(self) -> str:
        """A name of the job that no other has, the same after a restart."""
        if not self.store.exists("identity.json"):
            self.store.write_json("identity.json", {"job": uuid.uuid4().hex})
        return str(self.store.read_json("identity.json")["job"])

    def places(self, record: BatchRecord | None) -> tuple[BucketMap | None, str]:
        """Which bucket the groups of the state are in, and the file that says so; None: there is no state yet."""
        name = FIRST_PLACES if record is None else record.places
        if record is not None and not name:
            return BucketMap(len(record.segments)), ""
        if not self.store.exists(name):
            if record is None:
                return None, ""
            raise CheckpointMismatch(
                f"{self.store.path(name)} is gone, which says where the state of each group is; bring it back from a "
                "copy, or start with an empty checkpoint folder"
            )
        found = self.store.read_json(name)
        return BucketMap(int(found["buckets"]), tuple(found["homes"])), name

    def write_places(self, places: BucketMap, name: str) -> str:
        self.store.write_json(name, {"buckets": places.buckets, "homes": list(places.homes)})
        return name

    def newest(self) -> BatchRecord | None:
        """The last batch that counts. Its record may follow others, back to one that names every segment."""
        names = [n for n in self.store.names("batches") if n.endswith(".json") and not n.startswith(".")]
        later: list[dict[str, Any]] = []
        for name in reversed(names):
            value = self.store.read_json(f"batches/{name}")
            if later and later[0]["after"] != value["batch"]:
                break
            if value["changes"] == 0:
                return _record_from(value, later)
            later.insert(0, value)
        if later:
            raise CheckpointMismatch(
                f"the checkpoint {self.store.uri} lacks the record of batch {later[0]['after']}: a file of its folder "
                "batches was removed; bring it back, or start with an empty checkpoint folder"
            )
        return None

    def verify(self, record: BatchRecord | None) -> None:
        """Whether the segments that the record names are there, whole: each was written before the record was."""
        for segments in () if record is None else record.segments.values():
            for segment in segments:
                size = self.store.size(segment.path)
                if size != segment.bytes:
                    found = "is gone" if size is None else f"has {size} bytes, not {segment.bytes}"
                    raise CheckpointMismatch(
                        f"{self.store.path(segment.path)} {found}: state would be lost; bring it back from a copy, or "
                        "start with an empty checkpoint folder; `weft check` says what else is wrong"
                    )

    def commit(self, record: BatchRecord, before: BatchRecord | None) -> tuple[BatchRecord, int]:
        """The batch counts from here on; what only its predecessors needed goes. Also says how many bytes were written.

        A record names what changed, until that would be more than the state has segments: so what is written a batch
        does not grow with what is kept.
        """
        old = set() if before is None else _paths(before)
        new = _paths(record)
        gone = old - new
        changes = 1 + len(gone) + len(new - old) + (0 if before is None else before.changes)
        whole = before is None or changes > len(new)
        record = replace(record, changes=0 if whole else changes)
        value = asdict(record)
        if before is not None and not whole:
            for bucket, found in record.segments.items():
                value["segments"][bucket] = [asdict(s) for s in found if s.path not in old]
            value |= {"gone": sorted(gone), "after": before.batch}
        written = self.store.write_json(_record_name(record.batch), value)
        for path in gone:
            self.store.delete(path)
        if whole:
            for name in self.store.names("batches"):
                if f"batches/{name}" < _record_name(record.batch):
                    self.store.delete(f"batches/{name}")
        return record, written

    def repair(self, record: BatchRecord | None) -> None:
        """Remove what a run that was killed left behind: half-written files, and segments that no record names."""
        named = set() if record is None else _paths(record)
        for name in self.store.names("segments", recursive=True):
            if f"segments/{name}" not in named:
                self.store.delete(f"segments/{name}")
        if record is not None:
            for name in self.store.names("places"):
                if f"places/{name}" != record.places:
                    self.store.delete(f"places/{name}")

    def write_segment(
        self, bucket: int, batch: int, tables: Mapping[int, pa.Table], level: int = 0, first: int | None = None
    ) -> Segment | None:
        """One file for all trees of the bucket; a tree's table lies at its offset."""
        sink = pa.BufferOutputStream()
        parts: dict[str, tuple[int, int, int]] = {}
        for tree, table in tables.items():
            if table.num_rows:
                offset = sink.tell()
                with pa.ipc.new_stream(sink, table.schema) as writer:
                    writer.write_table(table)
                newest = int(pc.max(table.column("slice")).as_py())
                parts[str(tree)] = (offset, sink.tell() - offset, newest)
        if not parts:
            return None
        first = batch if first is None else first
        # A task that was given up may still write: what the record names must be what its own task wrote.
        path = f"segments/{bucket:04d}/{first:08d}-{batch:08d}-{uuid.uuid4().hex[:8]}.arrow"
        size = self.store.write(path, sink.getvalue())
        return Segment(path, first, batch, level, parts, size)

    def read_segment(self, segment: Segment, trees: Container[int] | None = None) -> dict[int, pa.Table]:
        """What it holds of these trees; None: of all."""
        data = self.store.read(segment.path)
        return {
            int(tree): pa.ipc.open_stream(data.slice(offset, length)).read_all()
            for tree, (offset, length, _) in segment.parts.items()
            if trees is None or int(tree) in trees
        }

    def load(
        self,
        layout: Layout,
        unread: Sequence[tuple[Segment, Container[int]]],
        watermark: int | None,
        state: State,
    ) -> State:
        """`state` with what segments add to it, each of some trees."""
        state = state.with_tables(layout, [self.read_segment(segment, trees) for segment, trees in unread])
        state = replace(state, watermark=watermark)
        return state.settled(layout) if unread else state

    def grow(
        self,
        bucket: int,
        batch: int,
        segments: tuple[Segment, ...],
        tables: Mapping[int, pa.Table],
        needed: Mapping[int, int],
    ) -> tuple[tuple[Segment, ...], int]:
        """Add what the batch brought, drop segments that no open window needs, and merge the newest `FAN_IN` of a level
        into one while they are small. Also says how many bytes were written.

        `needed` says, for each tree, the earliest slice that an open window covers; a tree that is not named is done.
        """
        fresh = self.write_segment(bucket, batch, tables)
        written = [] if fresh is None else [fresh]
        kept = [
            s
            for s in (*segments, *written)
            if any(newest >= needed[int(t)] for t, (_, _, newest) in s.parts.items() if int(t) in needed)
        ]
        while _mergeable(kept[-FAN_IN:]):
            merged = self._merge(bucket, tuple(kept[-FAN_IN:]), needed)
            new = [] if merged is None else [merged]
            kept[-FAN_IN:] = new
            written += new
        for segment in written:
            if segment not in kept:  # no record will ever name it
                self.store.delete(segment.path)
        return tuple(kept), sum(s.bytes for s in written)

    def _merge(self, bucket: int, segments: tuple[Segment, ...], needed: Mapping[int, int]) -> Segment | None:
        tables: dict[int, list[pa.Table]] = {}
        for segment in segments:
            for tree, table in self.read_segment(segment).items():
                if tree not in needed:
                    continue
                live = table.filter(pc.greater_equal(table.column("slice"), needed[tree]))
                tables.setdefault(tree, []).append(live)
        whole = {tree: pa.concat_tables(map(_plain, parts)) for tree, parts in tables.items()}
        return self.write_segment(bucket, segments[-1].last, whole, segments[0].level + 1, segments[0].first)


def _plain(table: pa.Table) -> pa.Table:
    """Dictionaries of different segments differ: written out, they can stand in one table."""
    for i, column in enumerate(table.columns):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(i, table.field(i).name, column.cast(column.type.value_type))
    return table


def _record_name(batch: int) -> str:
    return f"batches/{batch:08d}.json"


def _mergeable(newest: list[Segment]) -> bool:
    return len(newest) == FAN_IN and len({s.level for s in newest}) == 1 and sum(s.bytes for s in newest) < LARGE


def _paths(record: BatchRecord) -> set[str]:
    return {s.path for segments in record.segments.values() for s in segments}


def _record_from(value: dict[str, Any], later: Sequence[dict[str, Any]]) -> BatchRecord:
    """The last of the records that follow one another; `value` names every segment, the later ones what changed."""
    segments = {bucket: list(map(segment_from, found)) for bucket, found in value["segments"].items()}
    for value in later:
        gone = set(value["gone"])
        for bucket, added in value["segments"].items():
            stay = [s for s in segments.get(bucket, ()) if s.path not in gone]
            segments[bucket] = stay + list(map(segment_from, added))
    value = {"apart": int(value["drained"]), **value}  # earlier versions knew no other batch without rows
    known = {field.name: value[field.name] for field in fields(BatchRecord) if field.name in value}
    known["kept"] = {int(tree): first for tree, first in value.get("kept", {}).items()}  # earlier versions had none
    known["schedule"] = Schedule.read(value.get("schedule", {}))  # earlier versions had none
    return BatchRecord(**{**known, "segments": {bucket: tuple(found) for bucket, found in segments.items()}})


def segment_from(value: dict[str, Any]) -> Segment:
    return Segment(**{**value, "parts": {tree: tuple(part) for tree, part in value["parts"].items()}})
