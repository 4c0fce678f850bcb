"""The lengths of time that a job goes by: how rows may arrive, and what is kept for those who come later."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import pyarrow as pa

from weft.engine import Layout
from weft.engine.layout import MARKS, TreeLayout
from weft.model import WeftError
from weft.sql import duration

Late = Literal["drop", "update", "side"]


class BadOptions(WeftError):
    """Lengths of time that do not go together."""


@dataclass(frozen=True, slots=True)
class TimeOptions:
    """In microseconds."""

    delay: int = 0
    """How far the watermark stays behind the latest row."""
    late: Late = "drop"
    """What becomes of a row that came too late for a window: dropped and counted; put into it, and the answer sent
    again; or dropped, counted and written to a sink of its own."""
    lateness: int = 0
    """How long after its end a window is still answered again."""
    retain: int = 0
    """How long after its end the slices of a window are kept."""
    max_skew: int | None = None
    """A row that is further ahead of the clock does not move the watermark; None: every row does."""
    idle_timeout: int | None = None
    """When no row has come for so long the watermark goes on with the clock; None: it waits."""

    @classmethod
    def of(
        cls,
        watermark: str,
        late: str = "drop",
        lateness: str | None = None,
        retain: str | None = None,
        max_skew: str | None = None,
        idle_timeout: str | None = None,
    ) -> TimeOptions:
        """From intervals as Spark writes them, such as '10 seconds'."""
        if late not in get_args(Late):
            raise BadOptions(f"late must be drop, update or side, not {late!r}")
        if late == "update" and lateness is None:
            raise BadOptions("late='update' needs the time in which answers are sent again: lateness='10 minutes'")
        if late != "update" and lateness is not None:
            raise BadOptions(f"lateness is for late='update'; with late={late!r} an answer is never sent again")
        spans = {
            "delay": watermark,
            "lateness": lateness,
            "retain": retain,
            "max_skew": max_skew,
            "idle_timeout": idle_timeout,
        }
        found = {name: _length(name, text) for name, text in spans.items() if text is not None}
        if found.get("idle_timeout") == 0:
            raise BadOptions("idle_timeout must be longer than nothing; leave it out to wait for rows")
        return cls(late=late, **found)  # type: ignore[arg-type]

    def keep(self, layout: Layout) -> Layout:
        """The layout with what it must keep, and with marks on the answers where they may be revised."""
        layout = replace(layout, lateness=self.lateness, retain=self.retain)
        if not self.lateness:
            return layout

        def marked(tree: TreeLayout) -> TreeLayout:
            queries = tuple(replace(q, schema=pa.schema([*q.schema, *MARKS])) for q in tree.queries)
            return replace(tree, queries=queries)

        return layout.with_trees(marked)

    def agreed(self) -> dict[str, int]:
        """What a checkpoint was made with, and a restart must keep to."""
        return {"watermark": self.delay, "lateness": self.lateness, "retain": self.retain}


def _length(name: str, text: str) -> int:
    try:
        found = duration(text)
    except ValueError as error:
        raise BadOptions(f"{name}: {error}; write it as '10 seconds' or '1 hour'") from None
    if found < 0:
        raise BadOptions(f"{name} cannot be shorter than nothing, got {text!r}")
    return found
