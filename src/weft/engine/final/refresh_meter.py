"""How long SLIDE AT MOST queries take: the scheduler of refreshes learns its costs from these seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from weft.engine.final.filtered_partials import FilteredPartials
from weft.engine.final.windows import DueWindows
from weft.engine.layout import QueryLayout, TreeLayout


class RefreshMeter:
    """Seconds of SLIDE AT MOST queries: `scans` prepare what queries share, `answers` are per query and window."""

    def __init__(self) -> None:
        self.scans: dict[str, float] = {}
        self.answers: dict[str, float] = {}

    def prepare(self, query: QueryLayout, tree: TreeLayout, partials: FilteredPartials) -> None:
        """Prepare the components of the query, and measure each one when it is prepared first."""
        for scan, component in zip(tree.reads(query), query.components, strict=True):
            begun = time.perf_counter()
            partials.prepare(component)
            self.scans.setdefault(scan, time.perf_counter() - begun)

    @contextmanager
    def answering(self, name: str, due: DueWindows | None) -> Iterator[None]:
        """Measure the block as the answer of the query `name` for the windows `due`."""
        begun = time.perf_counter()
        yield
        windows = 1 if due is None else len(np.unique(due.ks))
        self.answers[name] = (time.perf_counter() - begun) / windows
