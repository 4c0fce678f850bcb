"""Edges in common, read from folded marks, are those that counting finds."""

from __future__ import annotations

from random import Random

import numpy as np

from tests.support.exhaustive import query
from weft.model import Workload
from weft.optimizer import TECHNIQUES, Cost
from weft.optimizer.edge_counting import EdgeBitmap, edge_rate
from weft.optimizer.edge_counting.folded_bitmap import Folds
from weft.optimizer.merge.bundle import bundles
from weft.optimizer.merge.candidates import FoldedReading
from weft.optimizer.merge.part import equal_edges


def test_folding_counts_the_marks_at_each_residue() -> None:
    marks = np.array([1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0, 1], np.uint8)
    folds = Folds.to([6, 3, 4, 2], 12)
    found = folds.of(marks)
    assert folds.source == {6: 12, 4: 12, 3: 6, 2: 4}
    for slide, begin in folds.begins.items():
        assert found[begin : begin + slide].tolist() == [int(marks[r::slide].sum()) for r in range(slide)]
    assert found[0] == 0


def test_counts_above_what_a_byte_holds_are_folded_too() -> None:
    folds = Folds.to([2, 600], 1200)
    assert folds.of(np.ones(1200, np.uint8))[folds.begins[2] :][:2].tolist() == [600, 600]


def test_a_board_reads_the_edges_in_common_that_counting_finds() -> None:
    random = Random(4)
    slides = [60, 120, 240, 480, 960]
    windows = [(random.choice(slides), random.randint(1, 900), random.randint(0, 59)) for _ in range(300)]
    workload = Workload(query(f"q{i}", s + more, s, offset % s) for i, (s, more, offset) in enumerate(windows))
    parts = equal_edges(list(enumerate(workload)), Cost(TECHNIQUES["panes"]))
    bitmap = EdgeBitmap.of({part: part.edges for part in parts})
    assert bitmap is not None
    reading = FoldedReading.of(bitmap, bundles(parts, adds=True))
    assert reading is not None, "300 windows are more work to count than five slides are to fold"
    for part in parts[:10]:
        expected = [float(edge_rate(part.edges) + edge_rate(p.edges) - edge_rate(part.edges | p.edges)) for p in parts]
        assert np.allclose(reading.common(part), expected, rtol=1e-12)


def test_few_windows_are_counted_not_read() -> None:
    workload = Workload([query("a", 7, 5), query("b", 11, 9)])
    parts = equal_edges(list(enumerate(workload)), Cost(TECHNIQUES["panes"]))
    bitmap = EdgeBitmap.of({part: part.edges for part in parts})
    assert bitmap is not None
    assert FoldedReading.of(bitmap, bundles(parts, adds=True)) is None
