"""Compaction of slices: partials that no open window separates become one (Cutty), also those of several batches.

A window needs a cut where it ends until it is answered. Before the watermark all windows have ended, so only the edges
where windows begin are still needed, and complete slices are merged between those:

    edges                   | a   | b | c   | d | e     windows begin at a, c and e and end at b and d
    before the watermark    | a         | c     |
"""

from __future__ import annotations

import numpy as np

from weft.engine.layout import TreeLayout
from weft.engine.state.partials import Partials, floored

WORTH = 4
"""Partials are compacted if that removes at least one of this many."""


def compact(
    partials: Partials, tree: TreeLayout, answered: int | None, until: int, group_count: int, *, ansi: bool
) -> Partials:
    """The same rows in fewer partials, if that is worth the copy; slices complete by `answered` are compact already.

    Windows that end by `until` are not answered again. A late row for a compacted slice stays a partial beside it: each
    window either holds both or is closed.
    """
    begins = tree.begins or tree.edges
    complete_until = tree.edges.floor(until)
    recent = np.ones(len(partials), bool)
    if answered is not None:
        recent = partials.slices >= begins.floor(tree.edges.floor(answered))
    candidates = partials.where(recent)
    slices = candidates.slices.copy()
    ended = slices < complete_until
    if tree.begins is not None:
        slices[ended] = floored(slices[ended], begins)
    order, starts = candidates.runs(slices)
    if WORTH * (len(slices) - len(starts)) < len(slices) or len(starts) == len(slices):
        return partials
    folded = candidates.combined(slices, order, starts, tree.components, ansi=ansi)
    return folded if len(candidates) == len(partials) else partials.where(~recent).merge(folded, group_count)
