"""Memory of Python workers: a batch reuses what the one before freed, and the garbage collector skips what stays."""

from __future__ import annotations

import ctypes
import gc
from functools import cache
from itertools import count

import pyarrow as pa

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
LARGEST = 1 << 30
SMALLER = 32 << 20
"""The largest threshold that older C libraries accept."""


@cache
def keep_freed_memory() -> bool:
    """Let this process keep what it frees; whether the C library knows how.

    Columns of a batch are as long as those of the batch before. By default each large one is mapped and unmapped
    again, and the first access to its pages takes longer than all the work on them.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # not glibc
        return False
    kept = bool(mallopt(M_MMAP_THRESHOLD, LARGEST) or mallopt(M_MMAP_THRESHOLD, SMALLER))
    mallopt(M_TRIM_THRESHOLD, LARGEST)
    mallopt(M_TOP_PAD, SMALLER)
    pa.set_memory_pool(pa.system_memory_pool())  # Arrow's own keeps freed pages for milliseconds only
    return kept


_TASKS = count(1)


def freeze_what_stays() -> None:
    """At the end of a task: hide from the garbage collector what this process will have for ever.

    Spark collects garbage after every task, and the next one waits for it: modules and kernels are a hundred thousand
    objects, and to look at all of them takes a tenth of a second, often longer than the task. Kernels come with the
    queries that need them, so this is repeated after the second task, the fourth, the eighth.
    """
    task = next(_TASKS)
    if task & (task - 1) == 0:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
