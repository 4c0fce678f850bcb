"""Breaches of the law that are known and not repaired yet: delete an entry with its repair.

A random query that one of these entries describes is drawn rarely, and what it finds is not reported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Known:
    """A defect, by the text of queries and the settings that have it, and by what then happens."""

    name: str
    text: str = ""
    outcome: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    rare: bool = True
    """Whether queries of that text are drawn rarely: most of them have the defect, and every one costs a job."""


KNOWN: tuple[Known, ...] = (
    Known(
        "Spark's count(DISTINCT) is not guarded by FILTER",
        r"count\(DISTINCT .*FILTER",
        "answers, Spark fails",
        rare=False,
    ),
    Known(
        "sums of decimals that overflow in one order of rows and not in another",
        r"(sum|avg|mean)\(",
        r"Overflow in sum of decimals",
        rare=False,
    ),
    Known("count of what is never NULL", r"count\(", "^fails", rare=False),
    Known("HAVING that Spark evaluates before the aggregates", " HAVING ", "^fails", rare=False),
    Known("what Spark's optimizer never evaluates", r"(map|array|struct)\(", "^fails", rare=False),
)


def known(text: str, settings: Mapping[str, str], outcome: str) -> str | None:
    """The name of the entry for such an outcome of such a query."""
    entries = (e for e in KNOWN if _describes(e, text, settings) and re.search(e.outcome, outcome, re.DOTALL))
    return next((entry.name for entry in entries), None)


def is_rare(text: str, settings: Mapping[str, str]) -> bool:
    """Whether the query is drawn rarely."""
    return any(entry.rare and _describes(entry, text, settings) for entry in KNOWN)


def _describes(entry: Known, text: str, settings: Mapping[str, str]) -> bool:
    in_such_a_session = all(settings.get(name) == value for name, value in entry.settings.items())
    return in_such_a_session and re.search(entry.text, text, re.IGNORECASE | re.DOTALL) is not None
