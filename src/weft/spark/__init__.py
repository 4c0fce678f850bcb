"""The pipeline on Spark: sources, slicing, partials, buckets, sinks, the checkpoint; the only importer of pyspark."""

from weft.spark.connectors import connectors
from weft.spark.errors import RunFailed
from weft.spark.job import Job, weave
from weft.spark.run import NotServed, Run
from weft.spark.session import local_session
from weft.spark.sources.open import open_source

__all__ = ["Job", "NotServed", "Run", "RunFailed", "connectors", "local_session", "open_source", "weave"]
