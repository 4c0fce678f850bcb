"""The names of compiled functions, apart from those that other processes gave.

numba tells functions of one name apart by a counter, which begins at 1 in every process. A kernel on disk calls its own
helpers by such names. Of two kernels that two processes compiled, each may have a helper of one name and another body;
in a process that loads both, the linker takes the first for both, and a maximum is found by adding. So the counter
begins somewhere else in each process.
"""

from __future__ import annotations

from itertools import count
from secrets import randbits

from numba.core.bytecode import FunctionIdentity

FunctionIdentity._unique_ids = count(randbits(60))
