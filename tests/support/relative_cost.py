"""Costs as in the examples of paper 4."""

from __future__ import annotations

from dataclasses import dataclass

from weft.schedule import Periodic


@dataclass(frozen=True, slots=True)
class Combines:
    """The paper's relative cost: one for each partial combined with what was read before it.

    >>> Combines().scan("max(length)", 10)
    9
    """

    each: float = 1
    finishing: float = 0

    def scan(self, kind: str, intervals: int) -> float:
        return self.each * (intervals - 1)

    def answer(self, query: Periodic) -> float:
        return self.finishing
