"""From queries to a plan that is bound to a stream: the same steps when a job is woven and when it changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from weft.model import ACQ, Workload
from weft.optimizer import optimize
from weft.plan import Plan
from weft.spark.bind import Binding, bind_plan
from weft.sql import refuse


@dataclass(frozen=True, slots=True)
class Weaver:
    """What stays the same however the queries of a job change."""

    stream: DataFrame
    event_time: str
    strategy: str
    technique: str
    rate: float

    def weave(
        self, workload: Workload, groupings: Sequence[tuple[str, ...]] = ()
    ) -> tuple[Plan, Binding]:
        """A plan for all the queries, and its binding; `groupings` have their numbers already."""
        for acq in workload:
            self._check(acq, workload[0])
        plan = optimize(workload, rate=self.rate, strategy=self.strategy, technique=self.technique)
        return plan, bind_plan(plan, self.stream, self.event_time, groupings)

    def _check(self, acq: ACQ, first: ACQ) -> None:
        if acq.source != first.source:
            raise refuse(
                acq,
                f"this query reads {acq.source}, another {first.source}: a job weaves the queries of one stream",
                "Weave the queries of each stream by themselves.",
                fragment=acq.source,
            )
        if acq.event_time.strip("`").lower() != self.event_time.strip("`").lower():
            raise refuse(
                acq,
                f"its window is over {acq.event_time}, but the stream's event time is {self.event_time}",
                f"Use window({self.event_time}, ...), or weave with event_time={acq.event_time!r}.",
                fragment=acq.event_time,
            )
        if acq.refresh != "exact":
            raise refuse(
                acq, "SLIDE AT MOST cannot be run yet", "Use SLIDE, which answers every window.", fragment="AT MOST"
            )
