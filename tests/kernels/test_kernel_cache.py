"""Kernels on disk: no two of them share an index, or processes that compile at once would mix them up."""

from __future__ import annotations

from typing import Any

from weft.kernels import BLOCKS, OPERATORS, PANES, TECHNIQUES, Technique, technique


def kernels(made: Technique) -> list[Any]:
    steps = made.steps
    found = [made.build, made.answer, made.answer_many]
    if steps is not None:
        found += [steps.insert, steps.evict, steps.ask, steps.slide, steps.run, steps.ask_many, steps.run_many]
    return [kernel for kernel in found if hasattr(kernel, "py_func")]


def index_names(made: Technique) -> list[str]:
    return [kernel._cache._name + kernel._cache._cache_file._index_name for kernel in kernels(made)]


def test_every_kernel_of_every_pair_has_an_index_of_its_own() -> None:
    pairs = [(n, o) for n, recipe in TECHNIQUES.items() for o, op in OPERATORS.items() if recipe.accepts(op)]
    made = [*BLOCKS.values(), *PANES.values(), *(technique(n, o) for n, o in pairs if n != "panes")]
    names = [name for one in made for name in index_names(one)]
    assert len(names) > 500
    assert len(set(names)) == len(names)
