"""The pipeline on Spark: sources, slicing, partials, buckets, sinks and the checkpoint; the only importer of pyspark."""

from weft.spark.job import Job, NotServed, Run, RunFailed, weave
from weft.spark.session import local_session

__all__ = ["Job", "NotServed", "Run", "RunFailed", "local_session", "weave"]
