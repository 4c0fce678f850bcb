"""Which batches are committed: a record per batch, written last.

batches/00000007.json   the record of batch 7; it names every segment of the state, or those that were added and
                        removed since the record before

The keys in a file are the format, the names in Python are not: the functions `..._json` and `..._from` are the only
places that know both. A record may have keys that this version does not know, as earlier ones wrote some that are gone;
its parts may not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from weft.engine import FOREVER, Layout
from weft.schedule import Schedule
from weft.schedule.pace import Pace
from weft.spark.checkpoint.files import CheckpointFiles, CheckpointMismatch, refuse_unknown_keys
from weft.spark.checkpoint.state_store import Segment


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """A committed batch. Counters run from the start of the job."""

    batch: int
    watermark: int | None = None
    max_event_time: int | None = None
    """Of all rows so far; rows too far ahead of the clock do not count."""
    segments: Mapping[int, tuple[Segment, ...]] = field(default_factory=dict)
    """The state, by bucket."""
    rows: int = 0
    answers: Mapping[str, int] = field(default_factory=dict)
    late: Mapping[str, int] = field(default_factory=dict)
    """Rows that missed a window of each query."""
    matched: Mapping[str, int] = field(default_factory=dict)
    """Rows that passed each query's filter; earlier versions did not count them."""
    corrupt_records: int = 0
    """Records that could not be read, and went to their side output."""
    state_bytes: int = 0
    """Bytes of state that this batch wrote."""
    drained: bool = False
    empty_batches: int = 0
    """Batches that Spark does not number: those without rows, while the stream was idle or at its end."""
    kept: Mapping[int, int] = field(default_factory=dict)
    """By tree, the first slice from which it has kept all its rows (see `engine.plan_transition`)."""
    schedule: Schedule = field(default_factory=Schedule)
    """Of queries with SLIDE AT MOST: when each was answered, and what the next batch may spend."""
    changed_segments: int = 0
    """Segments added and removed since the last record that names them all; 0: this record does."""
    input_digest: str = ""
    """Identifies the rows that the batch read (see `spark_offsets`); earlier versions did not write it."""
    bucket_map_file: str = ""
    """The file of the bucket map; empty: groups are hashed to the buckets."""

    @classmethod
    def initial(cls) -> BatchRecord:
        """Before the first batch: nothing was read, nothing is kept. It is never written."""
        return cls(-1)

    @property
    def is_initial(self) -> bool:
        return self.batch < 0

    @property
    def spark_batch(self) -> int:
        """Spark's own number of the last batch that had rows; -1: none had."""
        return self.batch - self.empty_batches

    @property
    def open_watermark(self) -> int | None:
        """The watermark while windows are open; None: no row has arrived yet, or the stream has ended."""
        return None if self.watermark == FOREVER else self.watermark

    @property
    def paths(self) -> set[str]:
        """Of the segments."""
        return {s.path for segments in self.segments.values() for s in segments}

    @property
    def newest(self) -> dict[int, int]:
        """The newest slice that the state holds of each tree."""
        newest: dict[int, int] = {}
        for segments in self.segments.values():
            for segment in segments:
                for tree, part in segment.parts.items():
                    newest[tree] = max(part.newest_slice, newest.get(tree, part.newest_slice))
        return newest

    def kept_from(self, layout: Layout) -> Mapping[int, int]:
        """`kept`, or, of a record of an earlier version, what the layout says must be kept."""
        return self.kept or ({} if self.watermark is None else layout.horizons(self.watermark))

    def kept_bytes(self) -> dict[int, int]:
        """Bytes of state in the checkpoint, by tree."""
        sizes: Counter[int] = Counter()
        for segments in self.segments.values():
            for segment in segments:
                sizes.update({tree: part.length for tree, part in segment.parts.items()})
        return dict(sizes)


@dataclass(frozen=True, slots=True)
class BatchLog:
    files: CheckpointFiles

    def newest(self) -> BatchRecord:
        """The last committed batch. Its record may depend on others, back to one that names every segment."""
        names = [n for n in self.files.names("batches") if n.endswith(".json") and not n.startswith(".")]
        later: list[dict[str, Any]] = []
        for name in reversed(names):
            value = self.files.read_json(f"batches/{name}")
            if later and later[0]["after"] != value["batch"]:
                break
            if value["changes"] == 0:
                return _record_from(value, later)
            later.insert(0, value)
        if later:
            raise CheckpointMismatch(
                f"the checkpoint {self.files.uri} lacks the record of batch {later[0]['after']}: a file of its folder "
                "batches was removed; bring it back, or start with an empty checkpoint folder"
            )
        return BatchRecord.initial()

    def commit(self, record: BatchRecord, before: BatchRecord) -> tuple[BatchRecord, int]:
        """Commit the batch, and delete what only its predecessors needed. Also returns the bytes written.

        A record names what changed since `before`, until that would be more than the state has segments: so what is
        written per batch does not grow with what is kept. After the initial record it names every segment.
        """
        gone, added = before.paths - record.paths, record.paths - before.paths
        changed = 1 + len(gone) + len(added) + before.changed_segments
        complete = before.is_initial or changed > len(record.paths)
        record = replace(record, changed_segments=0 if complete else changed)
        value = _record_json(record)
        if not complete:
            named = {b: [s.to_json() for s in segments if s.path in added] for b, segments in record.segments.items()}
            value |= {"segments": named, "gone": sorted(gone), "after": before.batch}
        written = self.files.write_json(_name(record.batch), value)
        for path in gone:
            self.files.delete(path)
        if complete:
            for name in self.files.names("batches"):
                if f"batches/{name}" < _name(record.batch):
                    self.files.delete(f"batches/{name}")
        return record, written


def _name(batch: int) -> str:
    return f"batches/{batch:08d}.json"


def _record_json(record: BatchRecord) -> dict[str, Any]:
    return {
        "batch": record.batch,
        "watermark": record.watermark,
        "latest": record.max_event_time,
        "segments": {str(bucket): [s.to_json() for s in segments] for bucket, segments in record.segments.items()},
        "rows": record.rows,
        "answers": dict(record.answers),
        "late": dict(record.late),
        "matched": dict(record.matched),
        "bad": record.corrupt_records,
        "state_bytes": record.state_bytes,
        "drained": record.drained,
        "apart": record.empty_batches,
        "kept": {str(tree): first for tree, first in record.kept.items()},
        "schedule": _schedule_json(record.schedule),
        "changes": record.changed_segments,
        "read": record.input_digest,
        "places": record.bucket_map_file,
    }


def _record_from(value: Mapping[str, Any], later: Sequence[Mapping[str, Any]]) -> BatchRecord:
    """The last of the records that follow one another; `value` names every segment, the later ones what changed."""
    segments = {int(bucket): list(map(Segment.from_json, of_bucket)) for bucket, of_bucket in value["segments"].items()}
    for value in later:
        gone = set(value["gone"])
        for bucket, added in value["segments"].items():
            stay = [s for s in segments.get(int(bucket), ()) if s.path not in gone]
            segments[int(bucket)] = stay + list(map(Segment.from_json, added))
    # Earlier versions of this format wrote fewer keys; the defaults are what they meant.
    return BatchRecord(
        batch=value["batch"],
        watermark=value["watermark"],
        max_event_time=value["latest"],
        segments={bucket: tuple(of_bucket) for bucket, of_bucket in segments.items()},
        rows=value["rows"],
        answers=value["answers"],
        late=value["late"],
        matched=value.get("matched", {}),
        corrupt_records=value.get("bad", 0),
        state_bytes=value["state_bytes"],
        drained=value["drained"],
        empty_batches=value.get("apart", int(value["drained"])),  # the last batch was the only one without rows
        kept={int(tree): first for tree, first in value.get("kept", {}).items()},
        schedule=_schedule_from(value.get("schedule", {})),
        changed_segments=value["changes"],
        input_digest=value.get("read", ""),
        bucket_map_file=value.get("places", ""),
    )


def _schedule_json(schedule: Schedule) -> dict[str, Any]:
    return {
        "answered": dict(schedule.answered),
        "periods": dict(schedule.periods),
        "planned": schedule.planned,
        "scans": dict(schedule.scans),
        "answers": dict(schedule.answers),
        "grant": schedule.grant,
        "owed": schedule.owed,
        "pace": {"behind": schedule.pace.behind, "patient": schedule.pace.patient},
        "refreshes": dict(schedule.refreshes),
        "runs": schedule.runs,
        "shared_runs": schedule.shared_runs,
    }


def _schedule_from(value: Mapping[str, Any]) -> Schedule:
    """Earlier versions wrote fewer keys; missing values are those before the first batch."""
    first, pace = Schedule(), value.get("pace", {})
    refuse_unknown_keys(value, _schedule_json(first), "a schedule")
    refuse_unknown_keys(pace, ("behind", "patient"), "the pace of a schedule")
    return Schedule(
        answered=value.get("answered", {}),
        periods=value.get("periods", {}),
        planned=value.get("planned", first.planned),
        scans=value.get("scans", {}),
        answers=value.get("answers", {}),
        grant=value.get("grant", first.grant),
        owed=value.get("owed", first.owed),
        pace=Pace(pace.get("behind", first.pace.behind), pace.get("patient", first.pace.patient)),
        refreshes=value.get("refreshes", {}),
        runs=value.get("runs", first.runs),
        shared_runs=value.get("shared_runs", first.shared_runs),
    )
