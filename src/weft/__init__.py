"""weft: hundreds of windowed aggregate queries over one stream, woven into one Spark job.

Planning never starts a JVM: what needs Spark is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.model import (
    ACQ,
    CheckpointError,
    PlanError,
    RunError,
    SinkError,
    SourceError,
    SqlError,
    WeftError,
    Window,
    Workload,
)

if TYPE_CHECKING:
    from weft.aggregates import register
    from weft.api import optimize
    from weft.plan import Plan, explain
    from weft.spark import Job, Run, weave
    from weft.sql import Refused, parse

__version__ = "0.1.0"

_LATER = {
    "Job": "weft.spark",
    "Plan": "weft.plan",
    "Refused": "weft.sql",
    "Run": "weft.spark",
    "explain": "weft.plan",
    "optimize": "weft.api",
    "parse": "weft.sql",
    "register": "weft.aggregates",
    "weave": "weft.spark",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATER[name]), name)


__all__ = [
    "ACQ",
    "CheckpointError",
    "Job",
    "Plan",
    "PlanError",
    "Refused",
    "Run",
    "RunError",
    "SinkError",
    "SourceError",
    "SqlError",
    "WeftError",
    "Window",
    "Workload",
    "__version__",
    "explain",
    "optimize",
    "parse",
    "register",
    "weave",
]
