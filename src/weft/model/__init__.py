"""Queries, windows and edges as frozen values; the standard library only."""

from weft.model.acq import ACQ, Call, InvalidWorkload, Life, Output, Workload
from weft.model.edges import EdgeClass, Edges
from weft.model.errors import WeftError
from weft.model.expression import Expression
from weft.model.refresh import Refresh, at_intervals
from weft.model.window import InvalidWindow, Window

__all__ = [
    "ACQ",
    "Call",
    "EdgeClass",
    "Edges",
    "Expression",
    "InvalidWindow",
    "InvalidWorkload",
    "Life",
    "Output",
    "Refresh",
    "WeftError",
    "Window",
    "Workload",
    "at_intervals",
]
