"""Table 1 of the dissertation: partials a window, by Panes, Pairs and Cutty."""

from __future__ import annotations

from math import gcd

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.model import Window
from weft.model.slicing import SLICINGS, cuts

windows = st.builds(
    lambda length, slide: Window(max(length, slide), min(length, slide)), st.integers(1, 60), st.integers(1, 60)
)


@pytest.mark.parametrize(
    ("length", "slide", "panes", "pairs", "cutty"),
    [
        (4, 1, 4, 4, 4),  # figure 2
        (14, 8, 7, 3, 2),  # figure 3: fragments 6 and 2
        (5, 3, 5, 3, 2),  # figure 4: a slice of 3, and 2 of the next
        (12, 9, 4, 3, 2),
        (3_600, 60, 60, 60, 60),
        (3_600, 3_599, 3_600, 3, 2),
    ],
)
def test_partials_a_window_are_those_of_table_1(length: int, slide: int, panes: int, pairs: int, cutty: int) -> None:
    window = Window(length, slide)
    assert [count(window) for count in SLICINGS.values()] == [panes, pairs, cutty]


@settings(deadline=None, derandomize=True)
@given(window=windows)
def test_the_formulas_of_table_1(window: Window) -> None:
    r, s = window.length, window.slide
    if r % s == 0:
        assert {count(window) for count in SLICINGS.values()} == {r // s}
    else:
        assert SLICINGS["panes"](window) == r // gcd(r, s)
        assert SLICINGS["pairs"](window) == 2 * (r // s) + 1
        assert SLICINGS["cutty"](window) == r // s + 1


@pytest.mark.parametrize("slicing", SLICINGS)
@settings(deadline=None, derandomize=True)
@given(window=windows)
def test_a_window_has_as_many_partials_as_its_cuts_say(slicing: str, window: Window) -> None:
    begin = 5 * window.slide
    end = begin + window.length
    inside = [cut for cut in cuts(slicing, window, until=end) if begin < cut < end]
    assert SLICINGS[slicing](window) == len(inside) + 1


@settings(deadline=None, derandomize=True)
@given(window=windows)
def test_no_slicing_has_fewer_partials_than_cutty_nor_more_than_panes(window: Window) -> None:
    panes, pairs, cutty = (count(window) for count in SLICINGS.values())
    assert cutty <= pairs <= panes
