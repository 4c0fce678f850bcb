"""The papers' figures, drawn again with weft; `FIGURES` has them by their number in the papers."""

from __future__ import annotations

from collections.abc import Mapping

from weft_bench.figures.edge_counting import COUNTING
from weft_bench.figures.figure import Claim, Figure, Scale
from weft_bench.figures.incremental import INCREMENTAL
from weft_bench.figures.phantoms.choosing import PHANTOM_CHOOSING
from weft_bench.figures.phantoms.collisions import PHANTOM_COLLISIONS
from weft_bench.figures.phantoms.counted_costs import PHANTOM_COUNTED
from weft_bench.figures.phantoms.space import PHANTOM_SPACE
from weft_bench.figures.placement import PLACEMENTS
from weft_bench.figures.schedule.policies import SCHEDULES
from weft_bench.figures.sharing import SHARING
from weft_bench.figures.short_cuts import SHORT_CUTS
from weft_bench.figures.techniques import TECHNIQUE_FIGURES

PAPER_1 = (*SHARING, *INCREMENTAL, *SHORT_CUTS)
PAPER_5 = (*PHANTOM_COLLISIONS, *PHANTOM_SPACE, *PHANTOM_CHOOSING, *PHANTOM_COUNTED)

FIGURES: Mapping[str, Figure] = {
    figure.name: figure for figure in (*PAPER_1, *COUNTING, *TECHNIQUE_FIGURES, *PAPER_5, *SCHEDULES, *PLACEMENTS)
}

__all__ = ["FIGURES", "Claim", "Figure", "Scale"]
