"""Errors in one sentence for users, with the way out if there is one."""

from __future__ import annotations

import re
from itertools import pairwise

from weft.model import RunError, WeftError

FULL = "No space left on device"
"""How Linux, and with it Java, Hadoop and Python, say that a disk is full."""

SPARKS = "Spark could not write notes to the checkpoint, rows that are set aside, or temporary files (spark.local.dir)"


class NotServed(RunError):
    """Something that this job cannot do."""


class RunFailed(RunError):
    """The stream stopped on an error; a restart repeats the batch that failed."""


def failure(error: BaseException) -> str:
    """The useful sentence of an error: weft's own, or the last line of the innermost traceback."""
    if isinstance(error, WeftError):
        return str(error)
    lines = str(error).splitlines()
    raised = [
        (match[1], match[2])
        for above, line in pairwise(lines)
        if above.startswith(" ") and (match := re.match(r"([A-Za-z_][\w.]*): (.+)", line))
    ]
    if raised and raised[-1][0].startswith("weft."):
        return raised[-1][1]
    if is_full(error):
        what = str(error) if isinstance(error, OSError) else SPARKS
        return f"the disk is full: {what}; make room and start again, nothing is lost"
    if not raised:
        return f"{type(error).__name__}: {next((line for line in lines if line.strip()), 'no more is known')}"
    return ": ".join(raised[-1])


def is_full(error: BaseException) -> bool:
    """Whether it failed because a disk is full, by its message or that of a cause."""
    cause: BaseException | None = error
    while cause is not None:
        # Spark's message may name only the task that failed; the stack trace that PySpark keeps has the cause.
        if FULL in str(cause) or FULL in str(getattr(cause, "_stackTrace", "")):
            return True
        cause = cause.__cause__
    return False
