"""Late-pending sharing: hybrid, but tasks of a group that are due now run with the late ones (algorithm 3).

tasks     those of hybrid
together  tasks of a group with the same deadline; in overload, all that are late or due
good for  heavy overload: a task that is due now would be late next
source    paper 4, section 4.4
"""

from __future__ import annotations

from weft.schedule.policies.hybrid import shortened
from weft.schedule.policies.policy import Policy


def all_due(lowest: int) -> int:
    return max(lowest, 0)


LATE_PENDING = Policy(shortened, all_due)
