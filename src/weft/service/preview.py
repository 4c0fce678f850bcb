"""What queries would cost before they join: the plan with them, beside the plan without."""

from __future__ import annotations

from pydantic import BaseModel, Field

from weft.plan import Plan, query_costs


class Previewed(BaseModel):
    """One query as it would stand in the plan."""

    name: str
    tree: int = Field(description="Its tree, as the plan with it counts them.")
    shares_with: int = Field(description="Other queries of that tree.")
    cost: float = Field(description="Its part of the plan's cost, in operations per second.")


class Preview(BaseModel):
    """Costs in operations per second."""

    queries: list[Previewed]
    cost_before: float
    cost_after: float
    more: float = Field(description="How much more the job costs with them.")
    alone: float = Field(description="What they would cost alone, with one tree per query.")
    trees_before: int
    trees_after: int


def preview(before: Plan, after: Plan) -> Preview:
    costs = query_costs(after)
    trees = {name: (number, tree) for number, tree in enumerate(after.trees, 1) for name in tree.queries}
    return Preview(
        queries=[
            Previewed(
                name=query.name,
                tree=trees[query.name][0],
                shares_with=len(trees[query.name][1].queries) - 1,
                cost=float(costs[query.name]),
            )
            for query in after.workload
            if query.name not in before.workload.by_name
        ],
        cost_before=float(before.cost),
        cost_after=float(after.cost),
        more=float(after.cost - before.cost),
        alone=float(after.unshared - before.unshared),
        trees_before=len(before.trees),
        trees_after=len(after.trees),
    )
