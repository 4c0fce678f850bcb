"""How long refreshing may take in the next batch without making the stream fall behind.

A batch has a fixed cost. If a batch takes a second longer, the next one has the rows of one more second, which cost
only the time per row. So if rows alone leave time, adding a constant time per batch keeps batches bounded. Therefore
refreshing gets a constant time, not a share of the batch: a share would grow with the rows, and every batch could be
longer than the one before. A source that limits the rows per batch does not give longer batches more rows; then the
stream falls behind, which is measured, and the time is halved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

USED = 0.8
"""The share of the idle time of an interval that is for refreshing; the rest is for Spark's own bookkeeping."""

LEAST = 0.05
"""The share of the time that refreshing always has, even if the stream falls behind anyway: no query starves."""

PATIENCE = 1.0
"""Seconds by which refreshing may make a batch longer if no trigger interval limits it: there is no trigger, or batches
take longer than its interval."""

RECOVERY = 1 / 8
"""The share of the patience that each batch that keeps up restores."""


@dataclass(frozen=True, slots=True)
class Pace:
    behind: float = 0.0
    """Seconds that batches took beyond the stream's own time, since it last kept up. Time in which no batch ran does
    not count: a job that waits for rows is not behind."""
    patient: float = 1.0
    """The share of the patience that is left."""

    def after(self, seconds: float, others: float, advanced: float) -> Pace:
        """After a batch of `seconds`, `others` of them not for refreshing, that moved event time by `advanced`.

        A batch that is longer than the one before because of refreshing looks like a stream that falls behind, once.
        So the stream counts as behind only if the delays add up to more than two batches.
        """
        behind = max(0.0, self.behind + seconds - advanced)
        if behind > PATIENCE + 2 * others:
            return Pace(behind, self.patient / 2)
        return replace(self, behind=behind, patient=min(1.0, self.patient + RECOVERY))

    def grant(self, interval: float, others: float) -> float:
        """Seconds for refreshing in a batch that begins `interval` after the one before, or later if that takes longer.

        >>> Pace().grant(interval=10.0, others=5.0), Pace().grant(interval=0.0, others=0.5)
        (4.0, 1.0)
        """
        patience = PATIENCE * self.patient if others >= interval else 0.0
        return max(LEAST * max(interval, others), USED * (interval - others), patience)
