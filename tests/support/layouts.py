"""Layouts of sums and maxima by key, their partials from single rows, and their windows by plain loops."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from hypothesis import strategies as st

from weft.aggregates import Component
from weft.aggregates.lowering import Value
from weft.engine import CallLayout, FeedLayout, GroupingLayout, Layout, QueryLayout, TreeLayout
from weft.engine.project import Typed
from weft.kernels import OPERATORS, accepts
from weft.model import Edges, Window

TIME = pa.timestamp("us", "UTC")


DOUBLE = pa.float64()


Entry = tuple[int, str | None, float | None]
"""Event time, key, value."""


COMPONENTS = (Component("rows"), Component("sum", ("v",)), Component("max", ("v",)))


BY_KEY = GroupingLayout(0, (pa.field("k0", pa.string()),))


def query(name: str, window: Window, component: Component, type_: pa.DataType) -> QueryLayout:
    outputs = (Typed("key", pa.string(), (), 0), Typed("window_start", TIME), Typed("call", type_, (), 0))
    schema = pa.schema([("k", pa.string()), ("start", TIME), ("value", type_)])
    return QueryLayout(name, window, None, (CallLayout(Value(), (component,), type_),), outputs, None, schema)


def layout(windows: Sequence[Window], value: pa.DataType = DOUBLE, trees: int = 1, technique: str = "blocks") -> Layout:
    """A sum and a maximum over each window, in one tree or in one a window, fed from the composite slices."""
    _, total, most = COMPONENTS
    queries = [[query(f"sum{i}", w, total, value), query(f"max{i}", w, most, value)] for i, w in enumerate(windows)]
    parts = [[q for pair in queries for q in pair]] if trees == 1 else queries
    composite = Edges.of(windows)
    serving = {o: technique for o in OPERATORS if accepts(technique, o)}
    return Layout(
        feeds=(
            FeedLayout(
                0,
                BY_KEY,
                composite,
                ("k0",),
                (),
                COMPONENTS,
                (("c0",), ("c1",), ("c2",)),
                tuple(
                    TreeLayout(
                        n, BY_KEY, Edges.of(q.window for q in part), COMPONENTS, {None: None}, 0, tuple(part), serving
                    )
                    for n, part in enumerate(parts)
                ),
            ),
        ),
        ansi=True,
        time_type=TIME,
    )


def partials(entries: Sequence[Entry], plan: Layout, value: pa.DataType = DOUBLE) -> pa.Table:
    """A partial a row, which is what a batch of single rows gives."""
    values = [v for _, _, v in entries]
    return pa.table(
        {
            "feed": pa.array([0] * len(entries), pa.int32()),
            "slice": pa.array([plan.feeds[0].edges.floor(t) for t, _, _ in entries], pa.int64()),
            "k0": pa.array([k for _, k, _ in entries], pa.string()),
            "c0": pa.array([1] * len(entries), pa.int64()),
            "c1": pa.array(values, value),
            "c2": pa.array(values, value),
        }
    )


def naive(entries: Sequence[Entry], window: Window) -> dict[tuple[str | None, int], list[float]]:
    found: dict[tuple[str | None, int], list[float]] = {}
    for time, key, value in entries:
        for k in range(window.first_over(time), window.last_over(time) + 1):
            found.setdefault((key, window.begin(k)), []).extend([] if value is None else [value])
    return found


def rows(table: pa.Table | None) -> dict[tuple[str | None, int], float | None]:
    if table is None:
        return {}
    starts = table.column("start").cast(pa.int64()).to_pylist()
    keys = table.column("k").to_pylist()
    answers = dict(zip(zip(keys, starts, strict=True), table.column("value").to_pylist(), strict=True))
    assert len(answers) == table.num_rows, "a window was answered twice"
    return answers


windows = st.builds(
    lambda slide, more, offset: Window(slide + more, slide, offset % slide),
    st.integers(1, 9),
    st.integers(0, 30),
    st.integers(0, 8),
)


entries = st.tuples(st.integers(-60, 60), st.sampled_from(["a", "b", None]), st.none() | st.integers(-9, 9).map(float))
