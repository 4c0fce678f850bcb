"""Late-pending sharing: hybrid, and with what is late whatever of the group is due now (algorithm 3).

tasks     those of hybrid
together  tasks of a group with the same deadline; in overload, all that are late or due
good for  heavy overload: what is due now would be late next
source    paper 4, section 4.4
"""

from __future__ import annotations

from weft.schedule.policies.hybrid import shortened
from weft.schedule.policies.policy import Policy


def all_due(lowest: int) -> int:
    return max(lowest, 0)


LATE_PENDING = Policy(shortened, all_due)
