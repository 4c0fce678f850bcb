"""EDF: the task with the earliest deadline runs, alone (algorithm 1; the paper's No-S).

tasks     one per period of a group
together  nothing, not even tasks that are due at the same time
good for  a baseline: shows what synchronising saves
source    paper 4, sections 4.1 and 5.1
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.schedule.cost import ScheduleCosts
from weft.schedule.periodic import Periodic
from weft.schedule.policies.policy import Policy
from weft.schedule.task import Task, sub_groups


def by_period(queries: Sequence[Periodic], cost: ScheduleCosts) -> tuple[Task, ...]:
    return sub_groups(queries)


def alone(lowest: int) -> None:
    return None


EDF = Policy(by_period, alone)
