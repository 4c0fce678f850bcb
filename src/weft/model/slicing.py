"""Slicing: where the papers cut a stream for one window, and how many partials the window then has (table 1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import gcd

from weft.model.window import Window

Slicing = Callable[[Window], int]
"""The number of partials in a window."""


def panes(window: Window) -> int:
    """Equal slices, as long as the greatest common divisor of range and slide.

    >>> panes(Window(length=14, slide=8))
    7
    """
    return window.length // gcd(window.length, window.slide)


def pairs(window: Window) -> int:
    """A cut where a window begins and where one ends: two slices a slide, one where the slide divides the range.

    >>> pairs(Window(length=14, slide=8))
    3
    """
    if window.length % window.slide == 0:
        return window.length // window.slide
    return 2 * (window.length // window.slide) + 1


def cutty(window: Window) -> int:
    """A cut only where a window begins; a window that ends inside a slice takes what the slice holds by then.

    >>> cutty(Window(length=5, slide=3))
    2
    """
    return -(-window.length // window.slide)


SLICINGS: Mapping[str, Slicing] = {"panes": panes, "pairs": pairs, "cutty": cutty}


def cuts(slicing: str, window: Window, until: int) -> list[int]:
    """The cuts in `(0, until]` by which the papers' counts come about.

    >>> {name: cuts(name, Window(length=5, slide=3), until=9) for name in SLICINGS}
    {'panes': [1, 2, 3, 4, 5, 6, 7, 8, 9], 'pairs': [2, 3, 5, 6, 8, 9], 'cutty': [3, 6, 9]}
    """
    if slicing == "panes":
        step = gcd(window.length, window.slide)
        # An offset that is no multiple of the step moves all cuts alike.
        return list(range((window.offset % step) or step, until + 1, step))
    if slicing == "pairs":
        return window.edges(until)
    begin = window.offset % window.slide
    return list(range(begin or window.slide, until + 1, window.slide))
