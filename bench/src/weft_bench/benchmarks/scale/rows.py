"""The rows of `weft bench scale`: files that are a batch each, in parquet or JSON."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

SMALL = {"json": 12, "parquet": 6}
"""Where throughput is measured, how many batches that do not count have together as many rows as one that does: enough
that the loops over rows are compiled, which takes a JVM some million turns."""

BEGUN = 2
"""Batches that do not count at the other points, which are on clusters that have run before."""


@dataclass(frozen=True, slots=True)
class RowShape:
    """What the rows of a stream are like."""

    keys: int
    rate: int
    skew: float = 0.0


def write_rows(
    folder: Path, seed: int, rows: int, batches: int, shape: RowShape, kind: str = "parquet", small: int | None = None
) -> Path:
    """One file per batch, in row groups or lines that two executors divide; `small` ones first, or some like the rest.

    Rows are like those that `weft calibrate` reads, so that its weights can be compared with what they take here.
    """
    import numpy as np
    import pyarrow.parquet as pq

    folder.mkdir()
    random = np.random.default_rng(seed)
    before = [rows] * BEGUN if small is None else [max(1, rows // SMALL[kind])] * small
    sizes = before + [rows] * batches
    for batch, (first, size) in enumerate(zip(accumulate(sizes, initial=0), sizes, strict=False)):
        table = _table(random, first, size, shape)
        path = folder / f"{batch:04d}.{kind}"
        if kind == "json":
            path.write_bytes(lines_of(table))
        else:
            pq.write_table(table, path, row_group_size=max(1, size // 8))
        os.utime(path, (1_700_000_000 + batch,) * 2)
    return folder


def _table(random: Any, first: int, size: int, shape: RowShape) -> Any:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from weft.calibration.measure.events import BEGIN

    times = BEGIN + (first + np.arange(size)) * 1_000_000 // shape.rate
    keys = pa.array(draw_keys(random, size, shape.keys, shape.skew)).cast("string")
    return pa.table(
        {
            "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
            "k": pc.binary_join_element_wise("k", keys, ""),
            "v": pa.array(random.random(size)),
        }
    )


def lines_of(table: Any) -> bytes:
    """One JSON object per row.

    >>> import pyarrow as pa
    >>> lines_of(pa.table({"ts": pa.array([1_500_000], pa.timestamp("us", "UTC")), "k": ["k7"], "v": [0.5]}))
    b'{"ts":"1970-01-01T00:00:01.500000Z","k":"k7","v":0.5}\\n'
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    times = pc.strftime(table["ts"], "%Y-%m-%dT%H:%M:%SZ")
    pieces = ('{"ts":"', times, '","k":"', table["k"], '","v":', table["v"].cast(pa.string()), "}\n", "")
    joined = pc.binary_join_element_wise(*pieces).combine_chunks()
    return b"".join(memoryview(chunk.buffers()[2]) for chunk in getattr(joined, "chunks", [joined]))


def draw_keys(random: Any, rows: int, keys: int, skew: float) -> Any:
    """The k-th key has rows like 1 / k^skew."""
    import numpy as np

    shares = np.arange(1, keys + 1, dtype=np.float64) ** -skew
    edges = np.cumsum(shares / shares.sum())
    return np.minimum(np.searchsorted(edges, random.random(rows)), keys - 1).astype(np.int32)
