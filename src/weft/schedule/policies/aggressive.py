"""Aggressive: a group is one task, as often as its most frequent query.

tasks     one for each group, with the shortest period in it
together  the whole group, always
good for  answers that cost nothing beyond the scan; else many answers are made before they are due
source    paper 4, section 4.2
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.schedule.cost import ScheduleCosts
from weft.schedule.periodic import Periodic
from weft.schedule.policies.policy import Policy, same_deadline
from weft.schedule.task import Task


def whole_group(queries: Sequence[Periodic], cost: ScheduleCosts) -> tuple[Task, ...]:
    return (Task(tuple(queries), min(query.period for query in queries)),)


AGGRESSIVE = Policy(whole_group, same_deadline)
