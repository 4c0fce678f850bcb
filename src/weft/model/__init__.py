"""Queries, windows and edges as frozen values; the standard library only."""

from weft.model.acq import ACQ, Call, InvalidWorkload, Output, Ttl, Workload
from weft.model.edges import EdgeClass, Edges
from weft.model.errors import CheckpointError, PlanError, RunError, SinkError, SourceError, SqlError, WeftError
from weft.model.expression import Expression
from weft.model.refresh import Refresh, at_intervals
from weft.model.window import InvalidWindow, Window

__all__ = [
    "ACQ",
    "Call",
    "CheckpointError",
    "EdgeClass",
    "Edges",
    "Expression",
    "InvalidWindow",
    "InvalidWorkload",
    "Output",
    "PlanError",
    "Refresh",
    "RunError",
    "SinkError",
    "SourceError",
    "SqlError",
    "Ttl",
    "WeftError",
    "Window",
    "Workload",
    "at_intervals",
]
