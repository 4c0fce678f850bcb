"""The key of an answer of a query: the begin of its window, and its group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from weft.engine import Layout, QueryLayout
from weft.model import SinkError

REVISION, RETRACTED = "weft_revision", "weft_retracted"


class CannotTell(SinkError):
    """Answers without a unique key, which the sink needs."""


@dataclass(frozen=True, slots=True)
class RowKey:
    """The columns of a query's answers that no two answers share."""

    window: str
    shape: str
    """Whether the column is the `window`, `window_start` or `window_end`."""
    length: int
    keys: tuple[str, ...]

    def starts(self, answers: pa.Table) -> Any:
        """The begin of each answer's window."""
        column = answers.column(self.window).combine_chunks()
        if self.shape == "window":
            return column.field("start") if isinstance(column, pa.StructArray) else pc.struct_field(column, "start")
        return pc.subtract(column, pa.scalar(self.length, pa.duration("us"))) if self.shape == "window_end" else column


def row_keys_of(layout: Layout, sink: str) -> dict[str, RowKey]:
    """By query. A query that does not select its window and all its keys is refused."""
    return {
        query.name: _row_key(query, len(tree.grouping.keys), sink) for tree in layout.current for query in tree.queries
    }


def _row_key(query: QueryLayout, keys: int, sink: str) -> RowKey:
    names = query.schema.names
    windows = {output.op: name for output, name in zip(query.outputs, names, strict=False)}
    shape = next((op for op in ("window", "window_start", "window_end") if op in windows), None)
    named = {output.value: name for output, name in zip(query.outputs, names, strict=False) if output.op == "key"}
    lacking = [*(["its window"] if shape is None else []), *(["all its group keys"] if len(named) < keys else [])]
    if lacking:
        raise CannotTell(
            f"{query.name} does not select {' and '.join(lacking)}, and {sink} identifies answers by them; "
            "select window.start and every key of GROUP BY as they are"
        )
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise CannotTell(f"{query.name} has two columns named {', '.join(doubled)}; give each another name with AS")
    assert shape is not None
    return RowKey(windows[shape], shape, query.window.length, tuple(named.values()))
