"""The state of each bucket: segments of partials, one file per batch and bucket, merged while they are small.

segments/0003/00000005-00000007-1f2e3d4c.arrow    what the batches 5 to 7 added to bucket 3

A segment counts only once a batch record names it (see `batch_log`).
"""

from __future__ import annotations

import uuid
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from weft.engine import Layout, State
from weft.spark.checkpoint.files import CheckpointFiles, refuse_unknown_keys

FAN_IN = 8
"""Segments of one level that are merged into one of the next: a partial is rewritten once per level."""

LARGE = 1 << 20
"""Bytes from which segments are no longer merged, so that the rewrites of a partial are bounded."""


class SegmentPart(NamedTuple):
    """Where the partials of a tree lie in a segment."""

    offset: int
    length: int
    newest_slice: int


@dataclass(frozen=True, slots=True)
class Segment:
    """The partials that the batches `first..last` added to a bucket."""

    path: str
    first: int
    last: int
    level: int
    parts: Mapping[int, SegmentPart]
    """By tree."""
    bytes: int

    def to_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "first": self.first,
            "last": self.last,
            "level": self.level,
            "parts": {str(tree): list(part) for tree, part in self.parts.items()},
            "bytes": self.bytes,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Segment:
        refuse_unknown_keys(value, ("path", "first", "last", "level", "parts", "bytes"), "a segment")
        return cls(
            path=value["path"],
            first=value["first"],
            last=value["last"],
            level=value["level"],
            parts={int(tree): SegmentPart(*part) for tree, part in value["parts"].items()},
            bytes=value["bytes"],
        )


@dataclass(frozen=True, slots=True)
class StateStore:
    """Writes and reads segments; picklable, as buckets do so in executors."""

    files: CheckpointFiles

    def write(
        self, bucket: int, batch: int, tables: Mapping[int, pa.Table], level: int = 0, first: int | None = None
    ) -> Segment | None:
        """One file for all trees of the bucket; None where there is nothing to write."""
        sink = pa.BufferOutputStream()
        parts: dict[int, SegmentPart] = {}
        for tree, table in tables.items():
            if table.num_rows:
                offset = sink.tell()
                with pa.ipc.new_stream(sink, table.schema) as writer:
                    writer.write_table(table)
                newest = int(pc.max(table.column("slice")).as_py())
                parts[tree] = SegmentPart(offset, sink.tell() - offset, newest)
        if not parts:
            return None
        first = batch if first is None else first
        # A task that was given up may still write: what the record names must be what its own task wrote.
        path = f"segments/{bucket:04d}/{first:08d}-{batch:08d}-{uuid.uuid4().hex[:8]}.arrow"
        size = self.files.write(path, sink.getvalue())
        return Segment(path, first, batch, level, parts, size)

    def read(self, segment: Segment, trees: Container[int] | None = None) -> dict[int, pa.Table]:
        """What it holds of these trees; None: of all."""
        data = self.files.read(segment.path)
        return {
            tree: pa.ipc.open_stream(data.slice(part.offset, part.length)).read_all()
            for tree, part in segment.parts.items()
            if trees is None or tree in trees
        }

    def load(
        self,
        layout: Layout,
        unread: Sequence[tuple[Segment, Container[int]]],
        watermark: int | None,
        state: State,
    ) -> State:
        """`state` with what segments add to it, each of some trees."""
        state = state.with_tables(layout, [self.read(segment, trees) for segment, trees in unread])
        state = replace(state, watermark=watermark)
        return state.compacted(layout) if unread else state

    def grow(
        self,
        bucket: int,
        batch: int,
        segments: tuple[Segment, ...],
        tables: Mapping[int, pa.Table],
        needed: Mapping[int, int],
    ) -> tuple[tuple[Segment, ...], int]:
        """Add what the batch brought, drop segments that no open window needs, and merge the newest `FAN_IN` of a level
        into one while they are small. Also returns the bytes written.

        `needed` has, by tree, the earliest slice that an open window covers; other trees are no longer needed.
        """
        fresh = self.write(bucket, batch, tables)
        written = [] if fresh is None else [fresh]
        kept = [
            s
            for s in (*segments, *written)
            if any(part.newest_slice >= needed[tree] for tree, part in s.parts.items() if tree in needed)
        ]
        while _mergeable(kept[-FAN_IN:]):
            merged = self._merge(bucket, tuple(kept[-FAN_IN:]), needed)
            new = [] if merged is None else [merged]
            kept[-FAN_IN:] = new
            written += new
        for segment in written:
            if segment not in kept:  # no record will ever name it
                self.files.delete(segment.path)
        return tuple(kept), sum(s.bytes for s in written)

    def _merge(self, bucket: int, segments: tuple[Segment, ...], needed: Mapping[int, int]) -> Segment | None:
        tables: dict[int, list[pa.Table]] = {}
        for segment in segments:
            for tree, table in self.read(segment).items():
                if tree not in needed:
                    continue
                live = table.filter(pc.greater_equal(table.column("slice"), needed[tree]))
                tables.setdefault(tree, []).append(live)
        merged = {tree: pa.concat_tables(map(_plain, parts)) for tree, parts in tables.items()}
        return self.write(bucket, segments[-1].last, merged, segments[0].level + 1, segments[0].first)


def _plain(table: pa.Table) -> pa.Table:
    """Without dictionaries: those of different segments differ, and one table cannot have both."""
    for i, column in enumerate(table.columns):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(i, table.field(i).name, column.cast(column.type.value_type))
    return table


def _mergeable(newest: list[Segment]) -> bool:
    return len(newest) == FAN_IN and len({s.level for s in newest}) == 1 and sum(s.bytes for s in newest) < LARGE
