"""A batch that fails for some of its queries: they leave the job, and the batch is run again without them."""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from weft.spark.execution.failing_queries import find_failing_queries
from weft.spark.execution.micro_batch import MicroBatchRunner
from weft.spark.logs import log_event
from weft.spark.physical.planner import Planner
from weft.spark.queries.registry import QueryRegistry
from weft.spark.sinks.base import RepeatedSink

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Retry:
    """Decides whether a batch that failed is run again."""

    registry: QueryRegistry
    planner: Planner

    def after(self, error: Exception, batch: int, runner: MicroBatchRunner, rows: DataFrame | None) -> MicroBatchRunner:
        """The runner for the next attempt, without the queries that the batch failed for.

        Raises the error if no query is the cause, or if no other query would remain.
        """
        active = self.registry.plan.workload.by_name
        queries = [active[query.name] for query in runner.physical.layout.queries if query.name in active]
        failed = find_failing_queries(error, rows, queries, self.planner)
        if not self.registry.expel(failed):
            raise error
        log_event(logger, "batch is retried without queries", level=logging.WARNING, batch=batch, queries=list(failed))
        if isinstance(runner.sink, RepeatedSink):
            runner.sink.undo(batch)
        # Some buckets may have run the batch: the state that their workers remember belongs to another plan.
        return replace(runner, epoch=uuid.uuid4().hex)
