"""Groups counted on some rows: when those are too few to tell."""

from __future__ import annotations

import numpy as np
import pytest

from weft.spark.partial.sampling import LARGER, SAMPLE, GroupSample


@pytest.mark.parametrize(
    ("groups", "rows_a_slice", "more"),
    [
        (10, SAMPLE, False),  # few groups: known at once
        (10**12, SAMPLE, False),  # every row a group of its own, and more rows would show the same
        (1_000, 500, False),  # slices are over before groups meet again, in the first half as in the second
        (40_000, SAMPLE, True),  # they meet again later in the slice
        (300_000, LARGER, True),
    ],
)
def test_more_rows_are_asked_where_groups_have_not_met_again_yet(groups: int, rows_a_slice: int, more: bool) -> None:
    drawn = np.random.default_rng(1).integers(0, groups, SAMPLE).astype(np.uint64)
    slices = (np.arange(SAMPLE) // rows_a_slice).astype(np.uint64)
    mixed = np.uint64(0x9E3779B97F4A7C15)
    sample = GroupSample({"key": drawn * mixed, "slice": slices * mixed}, SAMPLE)
    assert sample.needs_more_rows(("slice", "key")) is more
