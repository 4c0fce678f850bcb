"""Intervals: where a query with SLIDE AT MOST may be answered hangs on nobody else, and any two queries meet."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from weft.model import ACQ, Call, Window, at_intervals
from weft.model.refresh import INTERVALS, interval

lengths = st.sampled_from(INTERVALS).flatmap(lambda each: st.integers(1, 50).map(lambda n: n * each))


def test_each_interval_divides_the_next() -> None:
    assert all(longer % shorter == 0 and longer > shorter for shorter, longer in pairwise(INTERVALS))


@given(lengths, lengths, st.integers(0, 5))
def test_an_interval_divides_what_is_asked_for_and_no_longer_one_does(one: int, other: int, offset: int) -> None:
    slide, length = sorted((one, other))
    asked = Window(length, slide, offset * (slide // 6))
    found = interval(asked)
    assert not any(part % found for part in (asked.length, asked.slide, asked.offset))
    longer = [each for each in INTERVALS if each > found]
    assert not longer or any(part % longer[0] for part in (asked.length, asked.slide, asked.offset))


def test_windows_at_intervals_hold_those_that_were_asked_for() -> None:
    asked = ACQ("q", Window(90, 30, 10), (Call("count", ("*",)),), (), refresh="at_most")
    found = at_intervals(asked)
    assert (found.window, found.requested_window) == (Window(90, 10), asked.window)
    assert at_intervals(found) is found
    exact = ACQ("q", Window(90, 30, 10), (Call("count", ("*",)),), ())
    assert at_intervals(exact) is exact
