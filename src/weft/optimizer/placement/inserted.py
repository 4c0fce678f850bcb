"""Inserted: a tree drawn for each node, then the others, each where its node costs least afterwards (algorithm 6).

weave         into the tree of one of the nodes
weave, group  into any tree of any node, or alone on the lowest node
cost          a number of weavings quadratic in the number of trees
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
    """Draw the trees that open the nodes, as the dissertation's text says; algorithm 6 takes the first of the list.

    Both are the same for random queries, but not for trees merged before: there, frequent slides come first.
    """
    drawn = random.sample(range(len(parts)), min(number, len(parts)))
    left = set(range(len(parts))) - set(drawn)
    return [parts[place] for place in (*drawn, *sorted(left))]


def insert(
    parts: Iterable[Part], nodes: Sequence[ClusterNode], prices: PlacementPrices, grouping: bool
) -> PlacementBuilder:
    """Insert the parts in this order; the first ones get a node each."""
    builder = PlacementBuilder(nodes, prices)
    for part in parts:
        if [] in builder.parts:
            builder.group(part, builder.parts.index([]))
            continue
        load, node, tree, woven = _best_weaving(builder, part)
        lowest = builder.lowest(prices.of(part))
        if grouping and builder.load(lowest, prices.of(part)) < load:
            builder.group(part, lowest)
        else:
            builder.weave(part, node, tree, woven)
    return builder


def _best_weaving(builder: PlacementBuilder, part: Part) -> tuple[Fraction, int, int, Part]:
    """The load of the node after weaving, the node, the tree, and the woven part."""
    best: tuple[Fraction, int, int, Part] | None = None
    for node, trees in enumerate(builder.parts):
        for number, tree in enumerate(trees):
            # Weaving never makes a tree cheaper.
            if best is not None and builder.load(node) >= best[0]:
                break
            woven = builder.prices.weave(tree, part)
            load = builder.load(node, builder.prices.of(woven) - builder.prices.of(tree))
            if best is None or load < best[0]:
                best = load, node, number, woven
    assert best is not None
    return best
