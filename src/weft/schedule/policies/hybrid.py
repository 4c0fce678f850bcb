"""Hybrid: periods are shortened if running more often together is cheaper than running separately.

tasks     sub-groups of a group with the cheapest of the existing periods; by dynamic programming, or by greedy merging
          (`greedy_hybrid`, for comparison)
together  tasks of a group with the same deadline
good for  the least work by the model, never more than conservative or aggressive
source    paper 4, section 4.3
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.schedule.cost import ScheduleCosts
from weft.schedule.periodic import Periodic
from weft.schedule.periods import merge_greedily, shorten
from weft.schedule.policies.policy import Policy, same_deadline
from weft.schedule.task import Task, merged, sub_groups


def shortened(queries: Sequence[Periodic], cost: ScheduleCosts) -> tuple[Task, ...]:
    tasks = sub_groups(queries)
    return merged(tasks, shorten(tasks, cost).periods)


def shortened_greedily(queries: Sequence[Periodic], cost: ScheduleCosts) -> tuple[Task, ...]:
    tasks = sub_groups(queries)
    return merged(tasks, merge_greedily(tasks, cost))


HYBRID = Policy(shortened, same_deadline)
GREEDY_HYBRID = Policy(shortened_greedily, same_deadline)
