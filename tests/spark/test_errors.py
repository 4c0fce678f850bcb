"""What a person reads when a run has failed."""

from __future__ import annotations

import re

from weft.spark.checkpoint.files import CheckpointFileError
from weft.spark.errors import failure, is_full

WORKER = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "store.py", line 88, in _make
    raise CheckpointFileError(_explain(target, error)) from error
weft.spark.checkpoint.files.StoreError: /state/1 could not be written: the disk is full; make room and start again
"""


def test_the_sentence_of_weft_goes_before_all_that_stands_around_it() -> None:
    assert failure(RuntimeError(WORKER)).startswith("/state/1 could not be written: the disk is full")
    assert failure(CheckpointFileError("so it is")) == "so it is"


def test_a_full_disk_is_told_as_such_whoever_found_it() -> None:
    spark = RuntimeError("[STREAM_FAILED] Query [id = 1] terminated with exception: No space left on device")
    wrapped = RuntimeError("Job aborted")
    wrapped.__cause__ = OSError(28, "No space left on device")
    task = RuntimeError("[TASK_WRITE_FAILED] Task failed while writing rows")
    vars(task)["_stackTrace"] = "SparkException: ...\nCaused by: java.io.IOException: No space left on device"
    users = OSError(28, "No space left on device", "/mine")
    for error, told in ((spark, "Spark"), (wrapped, "Spark"), (task, "Spark could not write"), (users, ".*'/mine'")):
        assert is_full(error)
        assert re.match(f"the disk is full: {told}", failure(error))
        assert failure(error).endswith("make room and start again, nothing is lost")
    assert not is_full(RuntimeError("a division by zero"))


def test_of_other_failures_the_last_line_of_the_innermost_traceback_is_told() -> None:
    text = "Traceback:\n  File 'x'\n    f()\nValueError: too much\n\tat java.lang.Thread"
    assert failure(RuntimeError(text)) == "ValueError: too much"
    assert failure(RuntimeError("\nno column v")) == "RuntimeError: no column v"
    assert failure(RuntimeError("")) == "RuntimeError: no more is known"
