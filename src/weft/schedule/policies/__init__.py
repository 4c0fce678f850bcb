"""Which queries run together, and when: policies with one interface, one per file."""

from __future__ import annotations

from collections.abc import Mapping

from weft.schedule.policies.aggressive import AGGRESSIVE
from weft.schedule.policies.conservative import CONSERVATIVE
from weft.schedule.policies.edf import EDF
from weft.schedule.policies.hybrid import GREEDY_HYBRID, HYBRID
from weft.schedule.policies.late import LATE
from weft.schedule.policies.late_pending import LATE_PENDING
from weft.schedule.policies.policy import Policy

POLICIES: Mapping[str, Policy] = {
    "edf": EDF,
    "aggressive": AGGRESSIVE,
    "conservative": CONSERVATIVE,
    "hybrid": HYBRID,
    "late": LATE,
    "late_pending": LATE_PENDING,
    "greedy_hybrid": GREEDY_HYBRID,
}

__all__ = ["POLICIES", "Policy"]
