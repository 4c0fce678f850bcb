"""Queries woven over a stream: what a run is started from."""

from __future__ import annotations

from pyspark.sql import DataFrame

from weft.plan import Plan
from weft.spark.options import JobOptions
from weft.spark.partial.statistics import StatisticsCollector
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.physical.planner import Planner


class WovenQueries:
    """A planner, the plan that it made for the queries, and the statistics collected since."""

    def __init__(self, planner: Planner, physical: PhysicalPlan, collector: StatisticsCollector) -> None:
        self.planner = planner
        self.collector = collector
        self._physical = physical

    @property
    def options(self) -> JobOptions:
        """The options of `weave`."""
        return self.planner.options

    @property
    def physical(self) -> PhysicalPlan:
        """The plan as it was woven, with partials made as the newest statistics say."""
        self._physical = self.planner.refine(self._physical, self.collector.statistics)
        return self._physical

    @property
    def plan(self) -> Plan:
        """The trees and what they cost."""
        return self._physical.logical

    @property
    def cores(self) -> int:
        """The cores of the session: the number of buckets, unless the options or the checkpoint have another."""
        return cores(self.stream)

    @property
    def stream(self) -> DataFrame:
        """The stream, or the bounded table, of the queries."""
        return self.planner.stream


def cores(stream: DataFrame) -> int:
    return max(1, int(stream.sparkSession.sparkContext.defaultParallelism))
