"""Partials that no open window tells apart become one: what Cutty keeps, and what many batches bring for one slice.

A window that begins or ends within a slice needs a cut there until it is answered. Behind the watermark every end has
been; only the edges where windows begin are still asked for, so complete slices grow together between those:

    edges              | a   | b | c   | d | e        windows begin at a, c and e and end at b and d
    behind the mark    | a         | c     |
"""

from __future__ import annotations

import numpy as np

from weft.engine.layout import TreeLayout
from weft.engine.state.partials import Partials, floored

WORTH = 4
"""Partials are combined where that is the end of one in so many."""


def settle(partials: Partials, tree: TreeLayout, answered: int | None, until: int, group_count: int) -> Partials:
    """The same partials, fewer where it is worth the copy. Those complete by `answered` have been looked at before.

    Windows that end by `until` are not asked for again. A late row may still come for a slice that has grown together:
    it stands beside it, as its windows either hold both or have been answered.
    """
    begins = tree.begins or tree.edges
    done = tree.edges.floor(until)
    recent = np.ones(len(partials), bool)
    if answered is not None:
        recent = partials.slices >= begins.floor(tree.edges.floor(answered))
    some = partials.where(recent)
    slices = some.slices.copy()
    ended = slices < done
    if tree.begins is not None:
        slices[ended] = floored(slices[ended], begins)
    order, starts = some.runs(slices)
    if WORTH * (len(slices) - len(starts)) < len(slices) or len(starts) == len(slices):
        return partials
    folded = some.combined(slices, order, starts, tree.components)
    return folded if len(some) == len(partials) else partials.where(~recent).merge(folded, group_count)
