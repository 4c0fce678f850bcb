"""Inserted: a tree drawn for each node, then the others, each where its node costs least afterwards (algorithm 6).

weave         into the tree of one of the nodes
weave, group  into any tree of any node, or alone on the lowest node
cost          as many weavings as trees times trees there are
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from random import Random

from weft.optimizer.merge.part import Part
from weft.optimizer.placement.nodes import ClusterNode, PlacementBuilder, PlacementPrices


def weave_inserted(
    parts: Sequence[Part], nodes: Sequence[ClusterNode], prices: PlacementPrices, random: Random
) -> PlacementBuilder:
    return insert(_drawn_first(parts, len(nodes), random), nodes, prices, grouping=False)


def weave_or_group_inserted(
    parts: Sequence[Part], nodes: Sequence[ClusterNode], prices: PlacementPrices, random: Random
) -> PlacementBuilder:
    return insert(_drawn_first(parts, len(nodes), random), nodes, prices, grouping=True)


def _drawn_first(parts: Sequence[Part], number: int, random: Random) -> list[Part]:
    """The text draws them, algorithm 6 takes the first of the list. Of queries that are random themselves that is the
    same, of trees that were put together before it is not: frequent slides come first in the list.
    """
    drawn = random.sample(range(len(parts)), min(number, len(parts)))
    left = set(range(len(parts))) - set(drawn)
    return [parts[place] for place in (*drawn, *sorted(left))]


def insert(
    parts: Iterable[Part], nodes: Sequence[ClusterNode], prices: PlacementPrices, grouping: bool
) -> PlacementBuilder:
    """In this order, the first of them on a node each."""
    board = PlacementBuilder(nodes, prices)
    for part in parts:
        if [] in board.parts:
            board.group(part, board.parts.index([]))
            continue
        load, node, tree, woven = _best_weaving(board, part)
        lowest = board.lowest(prices.of(part))
        if grouping and board.load(lowest, prices.of(part)) < load:
            board.group(part, lowest)
        else:
            board.weave(part, node, tree, woven)
    return board


def _best_weaving(board: PlacementBuilder, part: Part) -> tuple[Fraction, int, int, Part]:
    """The node's load afterwards, which node, which of its trees, and the two as one."""
    best: tuple[Fraction, int, int, Part] | None = None
    for node, trees in enumerate(board.parts):
        for number, tree in enumerate(trees):
            # Weaving never makes a tree cheaper.
            if best is not None and board.load(node) >= best[0]:
                break
            woven = board.prices.weave(tree, part)
            load = board.load(node, board.prices.of(woven) - board.prices.of(tree))
            if best is None or load < best[0]:
                best = load, node, number, woven
    assert best is not None
    return best
