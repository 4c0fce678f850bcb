"""What executors send to the driver: a report per bucket, and answers if the driver writes them.

    rows   (bucket, query, payload): the report of a bucket (query NULL), or a part of a query's answers

A report travels as JSON under the keys that `encode` names, answers as Arrow streams.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from weft.spark.checkpoint.state_store import Segment

SCHEMA = "bucket int, query string, payload binary"

MAX_PAYLOAD_ROWS = 1_000_000
"""Rows of answers in one message to the driver: a message must stay below 2 GiB."""


class KeptTreeState(NamedTuple):
    """What is kept of a tree."""

    slices: int
    """Different slices, in the bucket that has the most."""
    partials: int
    """In all buckets."""


@dataclass(frozen=True, slots=True)
class BucketReport:
    """What one bucket did in one batch."""

    bucket: int
    segments: tuple[Segment, ...] = ()
    """The bucket's state after the batch."""
    state_bytes: int = 0
    """Bytes of state that it wrote."""
    answers: Mapping[str, int] = field(default_factory=dict)
    """Rows of answers, by query."""
    late: Mapping[str, int] = field(default_factory=dict)
    """Rows that missed a window of each query."""
    matched: Mapping[str, int] = field(default_factory=dict)
    """Rows that passed each query's filter."""
    trees: Mapping[int, KeptTreeState] = field(default_factory=dict)
    value_bytes: int = 0
    """Bytes of the partials without a fixed size when windows were answered: values, or samples of them."""
    scans: Mapping[str, float] = field(default_factory=dict)
    """Seconds to prepare what queries with SLIDE AT MOST read, by kind."""
    refreshes: Mapping[str, float] = field(default_factory=dict)
    """Seconds to answer each of them for one window."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """By phase."""
    memory: int = 0
    """The peak memory of the worker, in bytes."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Queries that cannot be answered, with the reason; if there are any, the bucket did nothing else."""

    def encode(self) -> bytes:
        value = {
            "bucket": self.bucket,
            "segments": [segment.to_json() for segment in self.segments],
            "state_bytes": self.state_bytes,
            "answers": dict(self.answers),
            "late": dict(self.late),
            "matched": dict(self.matched),
            "trees": {str(tree): list(state) for tree, state in self.trees.items()},
            "value_bytes": self.value_bytes,
            "scans": dict(self.scans),
            "refreshes": dict(self.refreshes),
            "seconds": dict(self.seconds),
            "memory": self.memory,
            "failed": dict(self.failed),
        }
        return json.dumps(value, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes) -> BucketReport:
        value = json.loads(data)
        return cls(
            bucket=value["bucket"],
            segments=tuple(map(Segment.from_json, value["segments"])),
            state_bytes=value["state_bytes"],
            answers=value["answers"],
            late=value["late"],
            matched=value["matched"],
            trees={int(tree): KeptTreeState(*state) for tree, state in value["trees"].items()},
            value_bytes=value["value_bytes"],
            scans=value["scans"],
            refreshes=value["refreshes"],
            seconds=value["seconds"],
            memory=value["memory"],
            failed=value["failed"],
        )


@dataclass(frozen=True, slots=True)
class Reports:
    """What all buckets sent."""

    buckets: tuple[BucketReport, ...]
    answers: Mapping[str, pa.Table]
    """The answers that were sent to the driver, by query."""

    @property
    def failed(self) -> dict[str, str]:
        return {name: reason for report in self.buckets for name, reason in report.failed.items()}

    @property
    def value_bytes(self) -> int:
        return sum(report.value_bytes for report in self.buckets)

    @classmethod
    def of(cls, rows: Iterable[Any]) -> Reports:
        """From the rows that executors sent, as Spark collects them."""
        buckets: list[BucketReport] = []
        tables: dict[str, list[pa.Table]] = {}
        for row in rows:
            payload = bytes(row["payload"])
            if row["query"] is None:
                buckets.append(BucketReport.decode(payload))
            else:
                tables.setdefault(row["query"], []).append(pa.ipc.open_stream(payload).read_all())
        return cls(tuple(buckets), {name: pa.concat_tables(parts) for name, parts in tables.items()})


def report_row(report: BucketReport) -> pa.RecordBatch:
    return _row(report.bucket, None, report.encode())


def answers_row(bucket: int, query: str, answers: pa.Table) -> pa.RecordBatch:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, answers.schema) as writer:
        writer.write_table(answers)
    return _row(bucket, query, bytes(sink.getvalue().to_pybytes()))


def _row(bucket: int, query: str | None, payload: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([bucket], pa.int32()), pa.array([query], pa.string()), pa.array([payload], pa.binary())],
        names=["bucket", "query", "payload"],
    )
