"""Operations, counted by running a technique's own functions as plain Python with an operator that counts.

The compiled code has no counters, so production does not pay for them, and the counted code is the one that runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, log2
from typing import Any

import numpy as np

from weft.kernels.techniques.combine import Column, Operator
from weft.kernels.techniques.registry import TECHNIQUES
from weft.kernels.techniques.technique import BEGIN, END, Steps


class OperationCounter:
    """How often an operator has combined or removed."""

    def __init__(self, operator: Operator) -> None:
        self.operations = 0
        combine, remove = operator.combine, operator.remove

        def counted_combine(values: Column, older: Any, newer: Any) -> Any:
            self.operations += 1
            return combine(values, older, newer)

        def counted_remove(values: Column, total: Any, oldest: Any) -> Any:
            self.operations += 1
            assert remove is not None
            return remove(values, total, oldest)

        self.operator = replace(operator, combine=counted_combine, remove=remove and counted_remove)


@dataclass(frozen=True, slots=True)
class Count:
    """Answers per range, and operations per slide and range; all in the first range if they cannot be separated."""

    answers: Sequence[Sequence[Any]]
    operations: Sequence[Sequence[int]]
    elements: int
    """What the state has room for: rings are powers of two; a pointer counts as an element, a mark does not."""

    @property
    def slides(self) -> list[int]:
        return [sum(by_range) for by_range in zip(*self.operations)]

    @property
    def total(self) -> int:
        return sum(self.slides)


def count_operations(
    name: str, operator: Operator, before: Column, partials: Column, ranges: Sequence[int] | None = None
) -> Count:
    """Slide over `partials` by one, the window full of `before` at first, as in the dissertation.

    `ranges`, none longer than the one before, are numbers of partials; without them there is one, the whole window.
    A partial's entering and leaving is counted with the first range.
    """
    counter = OperationCounter(operator)
    technique = TECHNIQUES[name].of(counter.operator)
    steps = technique.steps
    assert steps is not None
    window = len(before) if ranges is None else ranges[0]
    lengths = [window] if ranges is None else list(ranges)
    state = steps.start(partials, window, len(lengths))
    for i in range(len(before)):
        steps.insert(state, before, i)
    out = np.zeros((len(lengths), *partials.shape[1:]), partials.dtype)
    counts: list[list[int]] = [[] for _ in lengths]
    answers: list[list[Any]] = [[] for _ in lengths]
    for i in range(len(partials)):
        counter.operations = 0
        while state[1][END] - state[1][BEGIN] >= window:
            steps.evict(state)
        steps.insert(state, partials, i)
        operations = _ask(name, steps, state, None if ranges is None else lengths, out, counter)
        for j, (now, then) in enumerate(zip(operations, [0, *operations])):
            counts[j].append(now - then)
            answers[j].append(out[j].item() if out.ndim == 1 else out[j].tolist())
    return Count(answers, counts, sum(len(array) for array in (state[0], *state[2:])))


def _ask(
    name: str, steps: Steps, state: Any, lengths: Sequence[int] | None, out: Column, counter: OperationCounter
) -> list[int]:
    """Answer every range into `out`, and return the operations so far after each of them."""
    if lengths is None:
        steps.ask(state, out, 0)
        return [counter.operations]
    assert steps.ask_many is not None
    firsts = np.array([max(state[1][BEGIN], state[1][END] - length) for length in lengths])
    operations = []
    for last in range(1, len(lengths) + 1) if name in ONE_RANGE_AT_A_TIME else [len(lengths)]:
        first = last - 1 if name in ONE_RANGE_AT_A_TIME else 0
        steps.ask_many(state, firsts[first:last], out[first:last])
        operations.append(counter.operations)
    return operations + [operations[-1]] * (len(lengths) - len(operations))


ONE_RANGE_AT_A_TIME = ("panes", "flat_fat", "b_int", "flat_fit")
"""Techniques that answer each range separately, so that the operations per range are known."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Operations per slide of one query over n partials, and elements kept, by table 4."""

    amortised: float
    worst: float
    space: float


def table_4(name: str, n: int) -> Bound:
    """What the dissertation prints; B-Int's logarithm has a factor of up to two, for an answer has two flanks.

    >>> table_4("daba", 1024)
    Bound(amortised=5, worst=8, space=2048)
    """
    steps = ceil(log2(n)) if n > 1 else 0
    tree = 2 ** (steps + 1)
    return {
        "panes": Bound(n, n, n),
        "panes_inv": Bound(2, 2, n),
        "flat_fat": Bound(steps, steps, tree),
        "b_int": Bound(2 * steps, 2 * steps, tree),
        "flat_fit": Bound(3, n, 2 * n),
        "two_stacks": Bound(3, n, 2 * n),
        "daba": Bound(5, 8, 2 * n),
        "slick_deque_inv": Bound(2, 2, n),
        "slick_deque_non_inv": Bound(2, n, 2 * n),
    }[name]
