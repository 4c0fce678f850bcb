"""The plan of the next batch: changes gather here until one takes them up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from weft.plan import Plan
from weft.spark.checkpoint.plan_log import Change
from weft.spark.physical.binder import Binding
from weft.spark.queries.change import Join


@dataclass(frozen=True, slots=True)
class Pending:
    """What the next batch goes by, and what led there since the last one."""

    plan: Plan
    version: int = 0
    """Of the plan: grows with every change that is asked for, and with every better plan that is found."""
    binding: Binding | None = None
    """None: there is nothing to take up."""
    joining: Mapping[str, Join] = field(default_factory=dict)
    """Queries that no batch has taken up yet."""
    changes: tuple[Change, ...] = ()

    def adopt(
        self,
        plan: Plan,
        binding: Binding,
        reason: str,
        cost_before: float | None,
        joining: Mapping[str, Join] | None = None,
    ) -> Pending:
        """Another plan. Who joined since the last batch and has left again does not join."""
        joins = {n: j for n, j in {**self.joining, **(joining or {})}.items() if n in plan.workload.by_name}
        changes = (*self.changes, Change.to(plan, reason, cost_before))
        return Pending(plan, self.version + 1, binding, joins, changes)

    def tell(self, reason: str, bare: Binding) -> Pending:
        """The plan stays, and something that the next batch writes down has changed; `bare` is what it runs by now."""
        change = Change.to(self.plan, reason, float(self.plan.cost))
        return replace(self, binding=self.binding or bare, changes=(*self.changes, change))

    def taken_up(self) -> Pending:
        return Pending(self.plan, self.version)
