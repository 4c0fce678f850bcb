"""Kernels on disk: no two of them share an index or a symbol, or processes would mix them up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from weft.kernels import BLOCKS, OPERATORS, PANES, TECHNIQUES, Technique, technique


def kernels(made: Technique) -> list[Any]:
    steps = made.steps
    functions = [made.build, made.answer, made.answer_many]
    if steps is not None:
        functions += [steps.insert, steps.evict, steps.ask, steps.slide, steps.run, steps.ask_many, steps.run_many]
    return [kernel for kernel in functions if hasattr(kernel, "py_func")]


def index_names(made: Technique) -> list[str]:
    # numba has no other way to ask for the file of a kernel before it is compiled, and compiling all takes minutes.
    return [kernel._cache._name + kernel._cache._cache_file._index_name for kernel in kernels(made)]


def test_every_kernel_of_every_pair_has_an_index_of_its_own() -> None:
    pairs = [(n, o) for n, recipe in TECHNIQUES.items() for o, op in OPERATORS.items() if recipe.accepts(op)]
    made = [*BLOCKS.values(), *PANES.values(), *(technique(n, o) for n, o in pairs if n != "panes")]
    names = [name for one in made for name in index_names(one)]
    assert len(names) > 500
    assert len(set(names)) == len(names)


ANSWERS = """
import sys
import numpy as np
from weft.kernels import technique
values, lo, hi = np.array([5, -9, 2, 1, 3]), np.array([0, 2, 4]), np.array([2, 3, 5])
for operator in sys.argv[1:]:
    daba, out = technique("daba", operator), np.empty(3, np.int64)
    daba.answer(daba.build(values, 5), lo, hi, out)
    print(*out)
"""


@pytest.mark.slow
def test_kernels_of_different_processes_keep_their_own_helpers_in_a_third(tmp_path: Path) -> None:
    def run(*operators: str) -> list[str]:
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        command = [sys.executable, "-c", ANSWERS, *operators]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()

    sums, maxima = run("int_sum"), run("max")
    assert (sums, maxima) == (["-4 2 3"], ["5 2 3"])
    assert run("int_sum", "max") == [*sums, *maxima]
    assert run("max", "int_sum") == [*maxima, *sums]
