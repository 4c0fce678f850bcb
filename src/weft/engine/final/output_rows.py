"""The rows that a query returns: its SELECT and HAVING over the answers of its aggregate calls."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.engine.combine.base import Longs
from weft.engine.layout import Layout, QueryLayout
from weft.engine.project import LeafColumns, Typed, evaluate


def output_rows(
    query: QueryLayout,
    keys: list[pa.Array],
    starts: Longs,
    calls: list[pa.Array],
    layout: Layout,
    revision: int | None = None,
) -> pa.Table:
    """The query's columns for windows that begin at `starts`; with the columns MARKS where answers may be revised.

    A revision also has a row for a window that HAVING now leaves out: this row retracts the earlier answer.
    """
    begins = pa.array(starts).view(layout.time_type)
    ends = pa.array(starts + query.window.length).view(layout.time_type)
    columns = LeafColumns(
        calls=calls,
        keys=keys,
        window_start=begins,
        window_end=ends,
        window=pa.StructArray.from_arrays([begins, ends], names=["start", "end"]),
        rows=len(starts),
    )

    def output(node: Typed) -> pa.Array:
        # A plain key stays a dictionary: its values are not copied once more for every window.
        return keys[int(node.value or 0)] if node.op == "key" else evaluate(node, columns, ansi=layout.ansi)

    arrays = [output(node) for node in query.outputs]
    passes = None if query.having is None else evaluate(query.having, columns, ansi=layout.ansi).fill_null(False)
    if layout.allowed_lateness:
        retracted = np.zeros(len(starts), bool) if revision is None or passes is None else pc.invert(passes)
        arrays += [pa.array(np.full(len(starts), revision or 0)), pa.array(retracted)]
    fields = [field.with_type(array.type) for field, array in zip(query.schema, arrays, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    return table if passes is None or revision is not None else table.filter(passes)
