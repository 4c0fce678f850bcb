"""Unique names for compiled functions in all processes.

numba distinguishes functions of the same name by a counter, which begins at 1 in every process. A kernel on disk calls
its helpers by such names. Kernels that two processes compiled may have helpers with the same name and different code.
In a process that loads both, the linker uses the first helper for both, and a maximum may be computed by adding. So the
counter begins at a random number in each process.
"""

from __future__ import annotations

from itertools import count
from secrets import randbits

from numba.core.bytecode import FunctionIdentity

FunctionIdentity._unique_ids = count(randbits(60))
