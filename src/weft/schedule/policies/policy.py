"""The interface of all policies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.schedule.cost import ScheduleCosts
from weft.schedule.periodic import Periodic
from weft.schedule.task import Task

Split = Callable[[Sequence[Periodic], ScheduleCosts], tuple[Task, ...]]
"""How the queries of one group become tasks: every query in one, with a period no longer than its own."""

Reach = Callable[[int], int | None]
"""`reach(v)`: the first task has v updates until its deadline; others of its group run with it if they have at most
`reach(v)`. None: it runs alone."""


@dataclass(frozen=True, slots=True)
class Policy:
    split: Split
    reach: Reach


def same_deadline(lowest: int) -> int:
    return lowest
