from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from weft.kernels import floor_edges, group_offsets, merge_order, plain, sort_order
from weft.kernels.order import DISTINCT_LIMIT
from weft.model.edges import Edges

Partial = tuple[int, int]
partials = st.lists(st.tuples(st.integers(0, 4), st.integers(-5, 5) | st.integers(-(2**63), 2**63 - 1)), max_size=40)
examine = settings(max_examples=150, deadline=None, derandomize=True)


def columns(rows: list[Partial]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    return np.array([g for g, _ in rows], np.int32), np.array([s for _, s in rows], np.int64)


@examine
@given(partials)
def test_the_order_is_that_of_a_stable_sort(rows: list[Partial]) -> None:
    assert sort_order(*columns(rows), 5).tolist() == sorted(range(len(rows)), key=lambda i: rows[i])


@pytest.mark.parametrize("distinct", [3, DISTINCT_LIMIT, DISTINCT_LIMIT + 1])
def test_the_order_does_not_depend_on_how_many_slices_are_distinct(distinct: int) -> None:
    random = np.random.default_rng(0)
    slices = 1_000_000 * np.concatenate([np.arange(distinct), random.integers(0, distinct, 20_000)])
    random.shuffle(slices)
    groups = random.integers(0, 9, len(slices)).astype(np.int32)
    np.testing.assert_array_equal(sort_order(groups, slices, 9), np.lexsort((slices, groups)))


def test_what_is_sorted_stays_in_place() -> None:
    assert sort_order(*columns([(0, 3), (0, 3), (1, -9), (3, 0)]), 4).tolist() == [0, 1, 2, 3]


@examine
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3)), max_size=40))
def test_what_came_batch_by_batch_is_sorted_by_group_alone(rows: list[tuple[int, int]]) -> None:
    by_time = sorted(rows, key=lambda row: row[1])
    assert sort_order(*columns(by_time), 5).tolist() == sorted(range(len(by_time)), key=lambda i: by_time[i])


@examine
@given(partials, partials)
def test_a_merge_is_the_stable_sort_of_both(a: list[Partial], b: list[Partial]) -> None:
    a, b = sorted(a), sorted(b)
    both = a + b
    assert merge_order(*columns(a), *columns(b), 5).tolist() == sorted(range(len(both)), key=lambda i: both[i])


def test_offsets_count_groups_without_partials() -> None:
    assert group_offsets(np.array([1, 1, 3], np.int32), 5).tolist() == [0, 0, 2, 2, 3, 3]
    assert group_offsets(np.empty(0, np.int32), 2).tolist() == [0, 0, 0]


@examine
@given(
    st.lists(st.integers(-(10**6), 10**6) | st.integers(-30, 30), max_size=20),
    st.lists(st.tuples(st.integers(1, 40), st.integers(-50, 50)), min_size=1, max_size=5),
)
def test_floor_edges_are_the_models(times: list[int], classes: list[tuple[int, int]]) -> None:
    slides, shifts = np.array(classes, np.int64).T.copy()
    edges = Edges.of_classes(classes)
    assert floor_edges(np.array(times, np.int64), slides, shifts).tolist() == [edges.floor(t) for t in times]


def test_plain_copies_only_what_kernels_cannot_take() -> None:
    fine = np.arange(4)
    assert plain(fine, np.int64) is fine
    frozen = np.arange(4)
    frozen.flags.writeable = False
    for odd in (frozen, np.arange(8)[::2], np.arange(4, dtype=np.int32)):
        made = plain(odd, np.int64)
        assert made.flags.c_contiguous
        assert made.flags.writeable
        assert made.dtype == np.int64
        assert made.tolist() == odd.tolist()
