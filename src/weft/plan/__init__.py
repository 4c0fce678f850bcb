"""Plans as values that explain and check themselves."""

from weft.plan.check import PlanRejected, check_plan
from weft.plan.explain import explain, to_json
from weft.plan.page import to_fragment, to_html
from weft.plan.shares import query_cost, query_costs
from weft.plan.values import Condition, Feed, Guarantee, Plan, Refusal, Tree

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
