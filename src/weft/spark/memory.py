"""Memory of Python workers: what a batch frees, the next one takes again."""

from __future__ import annotations

import ctypes
from functools import cache

import pyarrow as pa

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
LARGEST = 1 << 30
SMALLER = 32 << 20
"""What older C libraries take at most as threshold."""


@cache
def keep_freed_memory() -> bool:
    """Let this process keep what it frees; whether the C library knows how.

    Columns of a batch are as long as those of the batch before. By default each large one is mapped anew and unmapped
    again, and touching its pages for the first time takes longer than all the work on them.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # not glibc
        return False
    kept = bool(mallopt(M_MMAP_THRESHOLD, LARGEST) or mallopt(M_MMAP_THRESHOLD, SMALLER))
    mallopt(M_TRIM_THRESHOLD, LARGEST)
    mallopt(M_TOP_PAD, SMALLER)
    pa.set_memory_pool(pa.system_memory_pool())  # Arrow's own keeps freed pages for milliseconds only
    return kept
