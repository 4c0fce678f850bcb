"""Where answers go. A sink writes in the executors, a bucket at a time, or takes everything on the driver.

It must be able to write the same batch again: a batch that was not committed is repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import pyarrow as pa

from weft.engine import Layout
from weft.model import SinkError

Answers = Mapping[str, pa.Table]


class OtherColumns(SinkError):
    """Answers of a query that had the same name and other columns."""


@runtime_checkable
class BucketSink(Protocol):
    """Written by each bucket where it runs; must be picklable."""

    def open(self, layout: Layout) -> None:
        """On the driver, before the first batch; again with queries that join later: what is raised keeps them out."""

    def write(self, batch: int, bucket: int, answers: Answers) -> None: ...


@runtime_checkable
class DriverSink(Protocol):
    """Gets a batch's answers on the driver, after all buckets and before the commit."""

    def open(self, layout: Layout) -> None: ...

    def take(self, batch: int, answers: Answers) -> None: ...


Sink = BucketSink | DriverSink


@runtime_checkable
class JobSink(Protocol):
    """Is told, before it is opened, a name of the job that no other job has and a restart keeps."""

    def begin(self, job: str) -> None: ...


@runtime_checkable
class RepeatedSink(Protocol):
    """Writes by bucket, and must forget a batch that was not committed before it is repeated in other buckets."""

    def undo(self, batch: int) -> None: ...


class AnswerListener(Protocol):
    """Gets some answers of each batch on the driver, after the commit, beside the sink: at most `rows` per query."""

    @property
    def rows(self) -> int: ...

    def take(self, batch: int, answers: Answers, counts: Mapping[str, int]) -> None:
        """`counts` says how many rows each query's answers have in all."""
