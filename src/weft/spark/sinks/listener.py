"""Watching answers beside the sink: what a service shows of them while the sink has them all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from weft.spark.sinks.base import Answers


class AnswerListener(Protocol):
    """Gets some of each batch's answers on the driver, after the commit: at most `rows` a query."""

    @property
    def rows(self) -> int: ...

    def take(self, batch: int, answers: Answers, counts: Mapping[str, int]) -> None:
        """`counts` says how many rows each query's answers have in all."""


def tapped(answers: Answers, rows: int) -> Answers:
    return {name: table.slice(0, rows) for name, table in answers.items()}
