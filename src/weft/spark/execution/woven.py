"""Queries woven over a stream: what a run is started from."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from weft.plan import Plan
from weft.spark.options import JobOptions
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.physical.planner import Planner


@dataclass(frozen=True, slots=True)
class WovenQueries:
    """A planner, and the plan that it made of the queries."""

    planner: Planner
    plan: Plan
    physical: PhysicalPlan

    @property
    def options(self) -> JobOptions:
        """What `weave` was told beside the stream and the queries."""
        return self.planner.options

    @property
    def cores(self) -> int:
        """The cores of the session: the number of buckets, unless the options or the checkpoint have another."""
        return cores(self.stream)

    @property
    def stream(self) -> DataFrame:
        """What the queries are over."""
        return self.planner.stream


def cores(stream: DataFrame) -> int:
    return max(1, int(stream.sparkSession.sparkContext.defaultParallelism))
