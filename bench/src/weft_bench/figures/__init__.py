"""The papers' figures, redrawn: which there are, by the number that they have there."""

from __future__ import annotations

from collections.abc import Mapping

from weft_bench.figures.counting import COUNTING
from weft_bench.figures.figure import Claim, Figure, Scale
from weft_bench.figures.mending import MENDING
from weft_bench.figures.phantoms_choosing import PHANTOM_CHOOSING
from weft_bench.figures.phantoms_collisions import PHANTOM_COLLISIONS
from weft_bench.figures.phantoms_counted import PHANTOM_COUNTED
from weft_bench.figures.phantoms_space import PHANTOM_SPACE
from weft_bench.figures.placement import PLACEMENTS
from weft_bench.figures.schedule import SCHEDULES
from weft_bench.figures.sharing import SHARING
from weft_bench.figures.short_cuts import SHORT_CUTS
from weft_bench.figures.techniques import TECHNIQUE_FIGURES

PHANTOMS = (*PHANTOM_COLLISIONS, *PHANTOM_SPACE, *PHANTOM_CHOOSING, *PHANTOM_COUNTED)

FIGURES: Mapping[str, Figure] = {
    figure.name: figure
    for figure in (*SHARING, *MENDING, *SHORT_CUTS, *COUNTING, *TECHNIQUE_FIGURES, *PHANTOMS, *SCHEDULES, *PLACEMENTS)
}

__all__ = ["FIGURES", "Claim", "Figure", "Scale"]
