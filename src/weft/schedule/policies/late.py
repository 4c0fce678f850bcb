"""Late sharing: hybrid, but all late tasks of a group catch up in one run.

tasks     those of hybrid
together  tasks of a group with the same deadline; in overload, all that are late
good for  overload: catching up costs one scan, not one per missed deadline
source    paper 4, section 4.4
"""

from __future__ import annotations

from weft.schedule.policies.hybrid import shortened
from weft.schedule.policies.policy import Policy

LATEST_OF_THE_LATE = -1


def all_late(lowest: int) -> int:
    return LATEST_OF_THE_LATE if lowest < 0 else lowest


LATE = Policy(shortened, all_late)
