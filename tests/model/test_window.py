"""Where windows begin and end."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.model import InvalidWindow, Window


def test_a_range_that_is_no_multiple_of_the_slide_cuts_each_slide_in_two() -> None:
    # t       0        3                 9       12               18
    # begins  |                          |                         |
    # ends             |                          |
    # slices  [--------)[----------------)[-------)[----------------)
    assert Window(12, 9).edges(until=18) == [3, 9, 12, 18]


def test_a_range_that_is_a_multiple_of_the_slide_is_cut_at_the_slide_alone() -> None:
    assert Window(12, 4).classes == ((4, 0),)


def test_an_offset_moves_both_edges() -> None:
    assert Window(12, 9, 2).classes == ((9, 2), (9, 5))
    assert Window(12, 9, -2).classes == ((9, 1), (9, 7))


@pytest.mark.parametrize(
    ("length", "slide", "offset", "message"),
    [
        (0, 1, 0, "at least a microsecond"),
        (5, 0, 0, "at least a microsecond"),
        (5, 6, 0, "rows that no window ever sees"),
        (9, 3, 3, "offset must be shorter than the slide 3, got 3"),
    ],
)
def test_what_spark_would_refuse_is_no_window(length: int, slide: int, offset: int, message: str) -> None:
    with pytest.raises(InvalidWindow, match=message):
        Window(length, slide, offset)


windows = st.tuples(st.integers(1, 20), st.integers(0, 60), st.integers(-19, 19)).map(
    lambda t: Window(t[0] + t[1], t[0], max(-t[0] + 1, min(t[2], t[0] - 1)))
)
seeded = settings(derandomize=True, deadline=None)


@seeded
@given(windows, st.integers(-200, 200))
def test_the_windows_over_an_instant_are_those_that_cover_it(window: Window, time: int) -> None:
    covering = [k for k in range(-300, 300) if window.begin(k) <= time < window.end(k)]
    assert covering == list(range(window.first_over(time), window.last_over(time) + 1))


@seeded
@given(windows, st.integers(-200, 200))
def test_the_last_ended_window_ends_by_the_watermark_and_the_next_does_not(window: Window, watermark: int) -> None:
    k = window.last_ended(watermark)
    assert window.end(k) <= watermark < window.end(k + 1)
