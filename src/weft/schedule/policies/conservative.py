"""Conservative: queries run together if they happen to be due at the same time (algorithm 2).

tasks     one per period of a group
together  tasks of a group with the same deadline
good for  periods that are multiples of each other
source    paper 4, section 4.2
"""

from __future__ import annotations

from weft.schedule.policies.edf import by_period
from weft.schedule.policies.policy import Policy, same_deadline

CONSERVATIVE = Policy(by_period, same_deadline)
