"""The pipeline on Spark: sources, slicing, partials, buckets, sinks, the checkpoint; the only importer of pyspark."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from weft.spark.connectors import connectors  # the function, not the module of that name

if TYPE_CHECKING:
    from weft.spark.errors import NotServed, RunFailed
    from weft.spark.job import Job, weave
    from weft.spark.run import Run
    from weft.spark.session import local_session
    from weft.spark.sources.open import open_source

_MODULES = {
    "Job": "job",
    "NotServed": "errors",
    "Run": "run",
    "RunFailed": "errors",
    "local_session": "session",
    "open_source": "sources.open",
    "weave": "job",
}


def __getattr__(name: str) -> Any:
    """Import on first use: the commands read `weft.spark.options`, and their `--help` must not wait for PySpark."""
    if name not in _MODULES:
        raise AttributeError(f"module 'weft.spark' has no attribute {name!r}")
    return getattr(import_module(f"weft.spark.{_MODULES[name]}"), name)


__all__ = ["Job", "NotServed", "Run", "RunFailed", "connectors", "local_session", "open_source", "weave"]
