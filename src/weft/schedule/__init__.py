"""SLIDE AT MOST: queries that are answered at least once per period; what they share, and when each runs.

Pure values and functions: the caller, a simulator or a running job, passes the clock, the costs and the time left.
"""

from __future__ import annotations

from weft.schedule.budget import Budget, run_within
from weft.schedule.choose import AtMostQuery, Chosen, Schedule, choose
from weft.schedule.cost import ScheduleCosts, schedule_cost
from weft.schedule.pace import Pace
from weft.schedule.periodic import InvalidPeriodic, Periodic
from weft.schedule.periods import Shortened, shorten
from weft.schedule.policies import POLICIES, Policy
from weft.schedule.queue import Queue, SharedRun, UnknownQuery
from weft.schedule.task import Task, groups, merged, sub_groups

__all__ = [
    "POLICIES",
    "AtMostQuery",
    "Budget",
    "Chosen",
    "InvalidPeriodic",
    "Pace",
    "Periodic",
    "Policy",
    "Queue",
    "Schedule",
    "ScheduleCosts",
    "SharedRun",
    "Shortened",
    "Task",
    "UnknownQuery",
    "choose",
    "groups",
    "merged",
    "run_within",
    "schedule_cost",
    "shorten",
    "sub_groups",
]
