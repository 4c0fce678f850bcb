"""Table 1 of the dissertation: partials per window, where a stream is cut by Panes, by Pairs and by Cutty."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import gcd

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.model import Edges, Window

SLICINGS: Mapping[str, Callable[[Window], Edges]] = {
    # Equal slices, the longest that have a cut wherever a window begins or ends.
    "panes": lambda window: Edges((Edges.of([window]).granule,)),
    # A cut where a window begins and where one ends.
    "pairs": lambda window: Edges.of([window]),
    # A cut only where a window begins; a window that ends inside a slice takes what the slice holds by then.
    "cutty": lambda window: Edges.of_begins([window]),
}

windows = st.builds(
    lambda length, slide: Window(max(length, slide), min(length, slide)), st.integers(1, 60), st.integers(1, 60)
)


def partials(slicing: str, window: Window) -> int:
    """The slices that a window lies in."""
    edges = SLICINGS[slicing](window)
    cut, end, count = 5 * window.slide, 5 * window.slide + window.length, 0
    while cut < end:
        cut, count = edges.next(cut), count + 1
    return count


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
def test_partials_per_window_are_those_of_table_1(length: int, slide: int, panes: int, pairs: int, cutty: int) -> None:
    assert [partials(slicing, Window(length, slide)) for slicing in SLICINGS] == [panes, pairs, cutty]


@settings(deadline=None, derandomize=True)
@given(window=windows)
def test_the_formulas_of_table_1(window: Window) -> None:
    r, s = window.length, window.slide
    if r % s == 0:
        assert {partials(slicing, window) for slicing in SLICINGS} == {r // s}
    else:
        assert partials("panes", window) == r // gcd(r, s)
        assert partials("pairs", window) == 2 * (r // s) + 1
        assert partials("cutty", window) == r // s + 1


@settings(deadline=None, derandomize=True)
@given(window=windows)
def test_the_cuts_of_pairs_are_the_edges_of_the_window(window: Window) -> None:
    cuts, edges = [0], SLICINGS["pairs"](window)
    while cuts[-1] < 3 * window.length:
        cuts.append(edges.next(cuts[-1]))
    assert cuts[1:] == window.edges(until=cuts[-1])


@settings(deadline=None, derandomize=True)
@given(window=windows)
def test_no_slicing_has_fewer_partials_than_cutty_nor_more_than_panes(window: Window) -> None:
    panes, pairs, cutty = (partials(slicing, window) for slicing in SLICINGS)
    assert cutty <= pairs <= panes
