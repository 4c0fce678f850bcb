"""The plan of the next batch: changes gather here until one takes them up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from weft.plan import Plan
from weft.spark.checkpoint.plan_log import PlanChange
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.queries.change import Join


@dataclass(frozen=True, slots=True)
class NextPlan:
    """What the next batch goes by, and what led there since the last one."""

    plan: Plan
    version: int = 0
    """Of the plan: grows with every change that is asked for, and with every better plan that is found."""
    physical: PhysicalPlan | None = None
    """None: there is nothing to take up."""
    joining: Mapping[str, Join] = field(default_factory=dict)
    """Queries that no batch has taken up yet."""
    changes: tuple[PlanChange, ...] = ()

    def adopt(
        self,
        plan: Plan,
        physical: PhysicalPlan,
        reason: str,
        cost_before: float | None,
        joining: Mapping[str, Join] | None = None,
    ) -> NextPlan:
        """Another plan. Who joined since the last batch and has left again does not join."""
        joins = {n: j for n, j in {**self.joining, **(joining or {})}.items() if n in plan.workload.by_name}
        changes = (*self.changes, PlanChange.to(plan, reason, cost_before))
        return NextPlan(plan, self.version + 1, physical, joins, changes)

    def tell(self, reason: str, bare: PhysicalPlan) -> NextPlan:
        """The plan stays, and something that the next batch writes down has changed; `bare` is what it runs by now."""
        change = PlanChange.to(self.plan, reason, float(self.plan.cost))
        return replace(self, physical=self.physical or bare, changes=(*self.changes, change))

    def taken_up(self) -> NextPlan:
        return NextPlan(self.plan, self.version)
