"""Aggressive: a group is one task, which runs as often as its most frequent query.

tasks     one per group, with its shortest period
together  always the whole group
good for  answers that cost nothing beyond the scan; otherwise many answers are computed before they are due
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
