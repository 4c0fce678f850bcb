"""FlatFAT: a binary tree in one array over the last partials, updated from the leaf to the root at every insert."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from weft.aggregates.kind import Algebra
from weft.kernels.techniques.combine import Column, Operator
from weft.kernels.techniques.sliding import Slider, leave_only, ring_size, sliding
from weft.kernels.techniques.technique import BEGIN, END, LONGEST, SLOTS, WRAP, Technique

LEAVES = LONGEST
"""Mark: how many leaves are in use, which is `longest`; partial p is leaf `p % LEAVES`."""


def tree(values: Column, longest: int, ranges: int) -> tuple[Column, ...]:
    """Node i has children 2i and 2i + 1, the root is 1; leaves begin in the middle.

    Leaves that are not filled yet hold zeros, which combine like any element.
    """
    return (np.zeros((2 * ring_size(longest), *values.shape[1:]), values.dtype),)


def flat_fat(operator: Operator) -> Technique:
    """FlatFAT for one operator.

    requires  an associative operator; with a commutative one the whole window is the root
    cost      log2(n) operations per insert; none per answer for the whole window, else up to 2 log2(n)
    space     2 ** (ceil(log2 n) + 1)
    source    dissertation, 2.3.2; Tangwongsan et al. 2015
    """
    lift, combine, load, store = operator.lift, operator.combine, operator.load, operator.store
    commutative = Algebra.COMMUTATIVE in operator.algebra

    @register_jitable
    def enter(state: Any) -> None:
        values, marks, nodes = state
        size, leaves = marks[WRAP] + 1, marks[LEAVES]
        node = size + marks[END] % leaves
        store(nodes, node, lift(values, marks[END] & marks[SLOTS]))
        height = 0
        node >>= 1
        while node > 0:
            if (2 * node + 1 << height) - size < leaves:
                store(nodes, node, combine(values, load(nodes, 2 * node), load(nodes, 2 * node + 1)))
            else:
                store(nodes, node, load(nodes, 2 * node))  # no leaf of the right child is in use
            height += 1
            node >>= 1
        marks[END] += 1

    @register_jitable
    def between(state: Any, first: int, last: int) -> Any:
        """Over leaves `first..last`, in their order."""
        values, marks, nodes = state
        low, high = first + marks[WRAP] + 1, last + marks[WRAP] + 2
        some_left = some_right = False
        left = right = load(nodes, low)
        while low < high:
            if low & 1:
                left = combine(values, left, load(nodes, low)) if some_left else load(nodes, low)
                some_left = True
                low += 1
            if high & 1:
                high -= 1
                right = combine(values, load(nodes, high), right) if some_right else load(nodes, high)
                some_right = True
            low >>= 1
            high >>= 1
        if some_left and some_right:
            return combine(values, left, right)
        return left if some_left else right

    @register_jitable
    def since(state: Any, first: int) -> Any:
        values, marks, nodes = state
        leaves = marks[LEAVES]
        oldest, newest = first % leaves, (marks[END] - 1) % leaves
        if marks[END] - first == leaves and (commutative or oldest == 0):
            return load(nodes, 1)
        if oldest <= newest:
            return between(state, oldest, newest)
        return combine(values, between(state, oldest, leaves - 1), between(state, 0, newest))

    @register_jitable
    def whole_window(state: Any) -> Any:
        return since(state, state[1][BEGIN])

    return sliding(operator, Slider(tree, enter, leave_only, whole_window, since))
