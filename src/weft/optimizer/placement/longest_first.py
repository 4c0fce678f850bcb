"""Shares of the group keys on nodes: the largest first, each to the least loaded node, as G_TL does with trees."""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]


def to_lowest(shares: Floats, loads: Floats) -> Longs:
    """The node of each share; `loads` are what the nodes have already.

    >>> to_lowest(np.array([3.0, 1.0, 2.0, 2.0]), np.zeros(2)).tolist()
    [0, 0, 1, 1]
    """
    heap = [(float(load), node) for node, load in enumerate(loads)]
    heapq.heapify(heap)
    node_of_share = np.empty(len(shares), np.int64)
    for share in np.argsort(-shares, kind="stable"):
        load, node = heap[0]
        node_of_share[share] = node
        heapq.heapreplace(heap, (load + float(shares[share]), node))
    return node_of_share
