"""A query that is answered at least once per period: what the scheduler works with."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from weft.model import PlanError, Window

Question = tuple[tuple[str, ...], int, str]


class InvalidPeriodic(PlanError):
    """A query that cannot be scheduled."""


@dataclass(frozen=True, slots=True)
class Periodic:
    """`SLIDE AT MOST period`: at most `period` updates of the synopses between two answers.

    Time is counted in updates of the synopses: `window` and `period` are numbers of intervals.
    """

    name: str
    reads: tuple[str, ...]
    """Kinds of synopsis: `avg(x)` reads those of `sum(x)` and `count(x)`, a union of groups those of its parts."""
    window: int
    period: int
    asks: str = ""
    """What is computed from the scanned intervals, such as `top 10`."""
    priority: int = 0
    """Of queries that are due at the same time, the one with the greater priority comes first."""
    once: bool = False
    """A one-time query: it leaves after its first answer."""

    def __post_init__(self) -> None:
        if not self.reads:
            raise InvalidPeriodic(f"{self.name} reads no synopsis; name at least one kind")
        if self.window < 1 or self.period < 1:
            raise InvalidPeriodic(
                f"{self.name}: window and period are integer numbers of intervals from 1 on, "
                f"got {self.window} and {self.period}"
            )

    @classmethod
    def of(cls, name: str, reads: tuple[str, ...], window: Window, interval: int, asks: str = "") -> Periodic:
        """From a window in microseconds: range and slide must be multiples of the synopses' interval.

        >>> Periodic.of("q1", ("max(length)",), Window(600, 120), 60).period
        2
        """
        if window.length % interval or window.slide % interval:
            raise InvalidPeriodic(
                f"{name}: range {window.length} and slide {window.slide} are not multiples of the synopses' interval "
                f"{interval}; an interval of {gcd(window.length, window.slide, interval)} would serve it"
            )
        return cls(name, reads, window.length // interval, window.slide // interval, asks)

    @property
    def question(self) -> Question:
        """Queries with the same question have the same answer; they differ only in name, period and priority."""
        return self.reads, self.window, self.asks
