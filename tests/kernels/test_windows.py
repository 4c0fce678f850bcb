from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from weft.kernels import count_windows, fill_windows, group_offsets

Answer = tuple[int, int, int, int]
FOREVER = (-(2**63), 2**63 - 1)
SECOND = 1_000_000
YEAR = 365 * 86_400 * SECOND


def flatten(groups: list[list[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    owners = np.array([g for g, times in enumerate(groups) for _ in times], np.int32)
    times = np.array([t for times in groups for t in sorted(times)], np.int64)
    return times, group_offsets(owners, len(groups))


def windows(
    groups: list[list[int]], length: int, slide: int, offset: int = 0, k: tuple[int, int] = FOREVER
) -> list[Answer]:
    slices, offsets = flatten(groups)
    counts = count_windows(slices, offsets, length, slide, offset, *k)
    starts = np.concatenate([[0], np.cumsum(counts)])
    total = int(starts[-1])
    group = np.empty(total, np.int32)
    index, lo, hi = (np.empty(total, np.int64) for _ in range(3))
    fill_windows(slices, offsets, length, slide, offset, *k, starts, group, index, lo, hi)
    return list(zip(group.tolist(), index.tolist(), lo.tolist(), hi.tolist()))


def naive_windows(groups: list[list[int]], length: int, slide: int, offset: int, k: tuple[int, int]) -> list[Answer]:
    answers = []
    first = 0
    for g, times in enumerate(groups):
        for index in range(k[0], k[1] + 1):
            begin = offset + index * slide
            before = sum(t < begin for t in times)
            inside = sum(begin <= t < begin + length for t in times)
            if inside:
                answers.append((g, index, first + before, first + before + inside))
        first += len(times)
    return answers


def test_a_range_that_is_no_multiple_of_the_slide() -> None:
    # slices     0    3    9    12
    # window -1  [----)                 [-9, 3)
    # window 0   [---------)            [0, 12)
    # window 1             [----)       [9, 21)
    assert windows([[0, 3, 9, 12]], length=12, slide=9) == [(0, -1, 0, 1), (0, 0, 0, 3), (0, 1, 2, 4)]


def test_a_gap_of_years_costs_nothing() -> None:
    answers = windows([[-200 * YEAR, 0, 200 * YEAR]], length=2 * SECOND, slide=SECOND)
    per_year = YEAR // SECOND
    assert [k for _, k, _, _ in answers] == [
        -200 * per_year - 1,
        -200 * per_year,
        -1,
        0,
        200 * per_year - 1,
        200 * per_year,
    ]
    assert [(lo, hi) for _, _, lo, hi in answers] == [(0, 1), (0, 1), (1, 2), (1, 2), (2, 3), (2, 3)]


def test_one_partial_before_the_epoch_is_in_the_windows_that_cover_it() -> None:
    assert windows([[-1]], length=3, slide=1) == [(0, -3, 0, 1), (0, -2, 0, 1), (0, -1, 0, 1)]


def test_equal_slices_are_one_time_with_several_partials() -> None:
    assert windows([[5, 5, 5]], length=5, slide=5) == [(0, 1, 0, 3)]


def test_a_group_without_partials_has_no_window() -> None:
    assert windows([[], [7], []], length=5, slide=5) == [(1, 1, 0, 1)]
    assert windows([], length=5, slide=5) == []


def test_bounds_far_from_the_partials_leave_nothing() -> None:
    for bounds in [(1, 0), (100, 200), (-200, -100), (2**63 - 1, 2**63 - 1), (-(2**63), -(2**63))]:
        assert windows([[5, 8]], length=5, slide=5, k=bounds) == []


dense = st.lists(st.integers(-30, 30), min_size=1, max_size=30)
sparse = st.lists(st.integers(-300, 300), max_size=6)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    groups=st.lists(dense | sparse, max_size=3),
    length=st.integers(1, 40),
    slide=st.integers(1, 8) | st.integers(9, 40),
    offset=st.integers(-50, 50),
    bounds=st.just((-450, 450)) | st.tuples(st.integers(-30, 30), st.integers(-30, 30)),
)
def test_windows_are_those_of_a_plain_loop(
    groups: list[list[int]], length: int, slide: int, offset: int, bounds: tuple[int, int]
) -> None:
    # A slide longer than the range leaves times in no window; queries have none such, the kernel does not mind.
    assert windows(groups, length, slide, offset, bounds) == naive_windows(groups, length, slide, offset, bounds)
