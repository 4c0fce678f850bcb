"""Plans as values that explain and check themselves."""

from weft.plan.attribution import query_cost, query_costs
from weft.plan.check import PlanRejected, check_plan
from weft.plan.explain import explain, to_json
from weft.plan.html import to_fragment, to_html
from weft.plan.logical import Condition, Feed, Guarantee, Plan, Refusal, Tree

Plan._repr_html_ = to_fragment  # type: ignore[attr-defined]
"""How notebooks show a plan: attached here, because `html` imports `logical`."""

__all__ = [
    "Condition",
    "Feed",
    "Guarantee",
    "Plan",
    "PlanRejected",
    "Refusal",
    "Tree",
    "check_plan",
    "explain",
    "query_cost",
    "query_costs",
    "to_fragment",
    "to_html",
    "to_json",
]
