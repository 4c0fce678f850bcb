"""The errors of weft: one base class, and one class per stage of the work.

`except weft.WeftError` catches all of them; a stage's class tells where to look.
"""

from __future__ import annotations


class WeftError(Exception):
    """Anything that weft refuses, with a message for users: the place, the problem, the way out."""


class SqlError(WeftError):
    """A text that is no query, or a query that weft does not serve."""


class PlanError(WeftError):
    """A plan that cannot be made, or that its check rejects."""


class CheckpointError(WeftError):
    """A checkpoint that cannot be read, or cannot be written."""


class SourceError(WeftError):
    """A source that cannot be opened or read."""


class SinkError(WeftError):
    """A sink that cannot be opened, or that does not take the answers."""


class RunError(WeftError):
    """A job that cannot continue, or a request that it cannot serve."""
