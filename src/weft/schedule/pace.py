"""How long refreshing may take in the next batch without making the stream fall behind.

A batch has a fixed cost. A batch that takes a second longer is followed by one with a second's more rows, and those
cost only what rows cost: as long as rows alone leave time, batches that are longer by a constant stay bounded. So
refreshing gets a constant time, not a share of the batch: a share would grow with the rows, and where rows take more
than the rest, every batch would be longer than the one before. Sources that limit the rows of a batch do not fill
longer batches; there the stream falls behind, which is measured, and the time is halved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

USED = 0.8
"""How much of the time that a batch leaves of its interval is for refreshing; Spark's own bookkeeping has the rest."""

LEAST = 0.05
"""The part of the time that refreshing has even where the stream falls behind without it: no query starves."""

PATIENCE = 1.0
"""Seconds by which refreshing may make a batch longer where no trigger holds it to an interval: there is none, or
batches take longer than it anyway."""

RECOVERY = 1 / 8
"""The part of the patience that comes back with each batch that keeps up."""


@dataclass(frozen=True, slots=True)
class Pace:
    behind: float = 0.0
    """Seconds that batches took beyond the stream's own time, since it last kept up. Time in which no batch ran does
    not count: a job that waits for rows is not behind."""
    patient: float = 1.0
    """The part of the patience that there is."""

    def after(self, seconds: float, others: float, advanced: float) -> Pace:
        """A batch took `seconds`, of them `others` not for refreshing; its rows moved event time on by `advanced`.

        A batch that is longer than the one before it by what refreshing took looks like a stream that falls behind,
        once. So only what adds up to more than two batches does.
        """
        behind = max(0.0, self.behind + seconds - advanced)
        if behind > PATIENCE + 2 * others:
            return Pace(behind, self.patient / 2)
        return replace(self, behind=behind, patient=min(1.0, self.patient + RECOVERY))

    def grant(self, interval: float, others: float) -> float:
        """Seconds for refreshing in a batch that begins `interval` after the one before, if that takes no longer.

        >>> Pace().grant(interval=10.0, others=5.0), Pace().grant(interval=0.0, others=0.5)
        (4.0, 1.0)
        """
        patience = PATIENCE * self.patient if others >= interval else 0.0
        return max(LEAST * max(interval, others), USED * (interval - others), patience)
