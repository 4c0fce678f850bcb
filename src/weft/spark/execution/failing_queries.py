"""Which queries made a batch fail: those that plain Spark could not answer over its rows either.

Plain Spark would stop these queries and no others, and so does weft. An error in a bucket names its query. An error
that Spark raises on a row does not: the rows are aggregated again for halves of the queries, until it is found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from weft.model import ACQ, RunError, Workload
from weft.spark.checkpoint.bucket_map import BucketMap
from weft.spark.partial.aggregate import sub_aggregate
from weft.spark.physical.planner import Planner

DATA_EXCEPTION = "22"
"""The class of SQLSTATE for values that an expression has no result for: division by zero, overflow, bad casts."""


class QueriesFailed(RunError):
    """Queries that cannot be answered over the rows of a batch."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        self.reasons = dict(reasons)
        message = "; ".join(f"{name} cannot be answered: {reason}" for name, reason in self.reasons.items())
        super().__init__(message)


def find_failing_queries(
    error: Exception, rows: DataFrame | None, queries: Sequence[ACQ], planner: Planner
) -> dict[str, str]:
    """The queries that made a batch fail, with the reason; empty if it failed for another cause."""
    if isinstance(error, QueriesFailed):
        return error.reasons
    if rows is None or not _is_data_error(error):
        return {}
    return _search(rows, queries, planner.with_options(strategy="shared", phantoms="never", groupings="native"))


def _search(rows: DataFrame, queries: Sequence[ACQ], planner: Planner) -> dict[str, str]:
    physical = planner.plan(Workload(queries))
    try:
        sub_aggregate(rows, physical, BucketMap(1)).write.format("noop").mode("overwrite").save()
    except PySparkException as error:
        if not _is_data_error(error):
            raise
        if len(queries) == 1:
            return {queries[0].name: str(error).strip().splitlines()[0]}
        half = len(queries) // 2
        return _search(rows, queries[:half], planner) | _search(rows, queries[half:], planner)
    return {}


def _is_data_error(error: Exception) -> bool:
    return isinstance(error, PySparkException) and (error.getSqlState() or "").startswith(DATA_EXCEPTION)
