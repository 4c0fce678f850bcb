"""Plans that follow one another: whatever the changes, every query gives every window of its time once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.layouts import BY_KEY, COMPONENTS, DOUBLE, TIME, Entry, entries, partials, query, rows, windows
from weft.engine import FOREVER, FeedLayout, GroupingLayout, Layout, QueryLayout, State, TreeLayout, advance, to_table
from weft.engine.plan_transition import PlanPools, Reader, first_kept, follow, furthest_reader
from weft.model import Edges, Window

BEGIN = -1000
WINDOWS = (Window(10, 5), Window(9, 3))


def woven(parts: Sequence[Sequence[QueryLayout]]) -> Layout:
    """A tree for each part, all fed from the composite slices."""
    composite = Edges.of(q.window for part in parts for q in part)
    trees = tuple(
        TreeLayout(n, BY_KEY, Edges.of(q.window for q in part), COMPONENTS, {None: None}, 0, tuple(part))
        for n, part in enumerate(parts)
    )
    names = (("c0",), ("c1",), ("c2",))
    return Layout((FeedLayout(0, BY_KEY, composite, ("k0",), (), COMPONENTS, names, trees),), True, TIME)


@dataclass
class Registered:
    """A query as plain loops see it: the values in each of its windows, and which of them it has answered."""

    window: Window
    since: int
    values: dict[tuple[str | None, int], list[float]] = field(default_factory=dict)
    answers: dict[tuple[str | None, int], float | None] = field(default_factory=dict)
    dropped_at: int | None = None

    def see(self, batch: Sequence[Entry], watermark: int) -> None:
        for time, key, value in batch:
            for k in range(self.window.first_over(time), self.window.last_over(time) + 1):
                if self.window.begin(k) >= self.since and self.window.end(k) > watermark:
                    self.values.setdefault((key, self.window.begin(k)), []).extend([] if value is None else [value])

    def expected(self) -> dict[tuple[str | None, int], float | None]:
        last = FOREVER if self.dropped_at is None else self.dropped_at
        ended = {at: v for at, v in self.values.items() if at[1] + self.window.length <= last}
        return {at: sum(v) if v else None for at, v in ended.items()}


changes = st.tuples(
    st.lists(windows, max_size=2),  # joined
    st.integers(0, 2),  # how many leave
    st.randoms(use_true_random=False),  # who leaves, and who sits with whom
)
steps = st.tuples(st.none() | changes, st.lists(entries, max_size=10), st.booleans())


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.lists(windows, min_size=1, max_size=3), st.lists(steps, min_size=1, max_size=8), st.integers(0, 20))
def test_any_script_of_changes_gives_each_query_its_windows_once(
    first: list[Window], script: list[tuple[object, list[Entry], bool]], delay: int
) -> None:
    queries = {f"q{i}": Registered(w, BEGIN) for i, w in enumerate(first)}
    layout = woven([[query(n, r.window, COMPONENTS[1], DOUBLE) for n, r in queries.items()]])
    state, latest, mark = State(), BEGIN, BEGIN
    for change, batch, restored in script:
        if change is not None:
            newest = {n: int(p.slices.max()) for n, p in state.trees.items() if len(p)}
            layout = _change(layout, queries, change, latest + 1, mark, newest)
        live = {n: r for n, r in queries.items() if r.dropped_at is None}
        for registered in live.values():
            registered.see(batch, mark)
        latest = max([latest, *(t for t, _, _ in batch)])
        mark = max(mark, latest - delay)
        step = advance(replace(state, watermark=state.watermark), partials(batch, layout), mark, layout)
        _take(queries, step.answers)
        state, layout = step.state, replace(layout, joining=frozenset())
        if restored:
            tables = {n: to_table(p, state.groups[0]) for n, p in state.trees.items() if len(p)}
            state = State(mark).with_tables(layout, [tables])
    _take(queries, advance(state, None, FOREVER, layout).answers)
    for name, registered in queries.items():
        assert registered.answers == registered.expected(), name


def _take(queries: dict[str, Registered], answers: object) -> None:
    for name, table in answers.items():  # type: ignore[attr-defined]
        new = rows(table)
        assert not queries[name].answers.keys() & new.keys(), "a window was answered twice"
        queries[name].answers.update(new)


def _change(
    layout: Layout, queries: dict[str, Registered], change: object, cut: int, mark: int, newest: dict[int, int]
) -> Layout:
    """Some leave, some join, and all that stay are shared out among trees anew."""
    joined, leaving, random = change  # type: ignore[misc]
    live = [n for n, r in queries.items() if r.dropped_at is None]
    for name in random.sample(live, min(leaving, len(live) - 1)):
        queries[name].dropped_at = mark
        live.remove(name)
    arrived = {f"q{len(queries) + i}": w for i, w in enumerate(joined)}
    queries.update({n: Registered(w, cut) for n, w in arrived.items()})
    everyone = [query(n, queries[n].window, COMPONENTS[1], DOUBLE) for n in [*live, *arrived]]
    parts: list[list[QueryLayout]] = [[] for _ in range(random.randint(1, 3))]
    for q in everyone:
        random.choice(parts).append(q)
    newcomers = {name: Reader(cut, ()) for name in arrived}
    return follow(PlanPools.of(layout), woven([p for p in parts if p]), newcomers, cut, mark, newest)


def test_a_tree_that_stays_as_it_is_goes_on_with_its_pool() -> None:
    a, b, c = (
        query(n, w, COMPONENTS[1], DOUBLE) for n, w in (("a", Window(10, 5)), ("b", Window(9, 3)), ("c", Window(7, 7)))
    )
    after = follow(PlanPools.of(woven([[a], [b]])), woven([[a], [b], [c]]), {"c": Reader(100, ())}, 100, 90, {})
    assert [(t.number, t.since) for t in after.current] == [(0, None), (1, None), (2, 100)]
    assert not after.older
    assert all(not q.older for q in after.queries)


def test_a_pool_that_a_query_took_leave_of_takes_no_more_rows() -> None:
    a, b = (query(n, w, COMPONENTS[1], DOUBLE) for n, w in (("a", Window(10, 5)), ("b", Window(10, 5))))
    after = follow(PlanPools.of(woven([[a, b]])), woven([[a], [b]]), {}, 100, 90, {})
    assert [t.number for t in after.current] == [1, 2]
    assert [t.number for t in after.older] == [0]
    assert [q.older for q in after.queries] == [(0,), (0,)]


def test_a_query_sees_of_the_past_what_the_slices_allow() -> None:
    # slices of 10/5 and 9/3: edges at all multiples of 5 and of 3
    layout = woven([[query(n, w, COMPONENTS[1], DOUBLE) for n, w in zip("ab", WINDOWS, strict=True)]])
    assert layout.horizons(40) == {0: 33}

    kept: dict[int, int] = {}

    def reader_for(length: int, slide: int, offset: int = 0, grouping: GroupingLayout = BY_KEY) -> Reader | None:
        new_query = query("c", Window(length, slide, offset), COMPONENTS[2], DOUBLE)
        return furthest_reader(new_query, grouping, layout, 40, first_kept(kept, layout, 40))

    assert reader_for(15, 15) == Reader(45, (0,))
    assert reader_for(12, 6, 3) == Reader(33, (0,))
    assert reader_for(14, 7) is None
    assert reader_for(12, 6, 3, GroupingLayout(1, ())) is None, "groups by other keys"
    layout = replace(layout, retention=100)
    assert reader_for(15, 15) == Reader(-60, (0,))
    kept[0] = 10
    assert reader_for(15, 15) == Reader(15, (0,)), "what earlier batches dropped is not kept longer now"


def test_a_pool_whose_rows_lie_behind_every_open_window_is_forgotten() -> None:
    a, b = (query(n, w, COMPONENTS[1], DOUBLE) for n, w in (("a", Window(10, 5)), ("b", Window(10, 5))))
    layout = woven([[a, b]])
    for change in range(1, 20):
        parts = [[a], [b]] if change % 2 else [[a, b]]
        layout = follow(PlanPools.of(layout), woven(parts), {}, 100 * change, 100 * change - 10, {})
        assert len(layout.older) <= 2


def test_who_reads_the_past_of_a_short_window_does_not_reach_behind_the_pools_that_it_is_done_with() -> None:
    # a is short, b long, c comes later; with c the tree is another one, and the rows before lie in pool 0
    #            0 ......... 100 ......... 200
    # pool 0     [ a, b      )
    # pool 1                 [ a, b, c
    a, b, c, d, e = (
        query(n, w, COMPONENTS[1], DOUBLE)
        for n, w in (("a", Window(6, 3)), ("b", Window(300, 3)), *((n, Window(10, 5)) for n in "cde"))
    )
    layout = woven([[a, b]])
    kept = first_kept({}, layout, 90)
    layout = follow(PlanPools.of(layout), woven([[a, b, c]]), {"c": Reader(101, ())}, 101, 90, {0: 99})
    kept = first_kept(kept, layout, 190)
    # With another tree a change comes, and a has no open window left that needs pool 0.
    layout = follow(PlanPools.of(layout), woven([[a, b, c], [d]]), {"d": Reader(201, ())}, 201, 190, {0: 99, 1: 199})
    kept = first_kept(kept, layout, 195)
    assert PlanPools.of(layout).readers["a"].pools == (1,)
    assert PlanPools.of(layout).readers["b"].pools == (0, 1)
    reader = furthest_reader(e, BY_KEY, layout, 195, kept)
    assert reader is not None
    assert reader.since is not None
    assert reader.since > 100, "pool 0 has rows before that and lacks the edges"


def test_who_reads_the_past_does_not_take_one_that_has_not_arrived() -> None:
    a, b, c = (
        query(n, w, COMPONENTS[1], DOUBLE) for n, w in (("a", Window(10, 5)), ("b", Window(9, 3)), ("c", Window(9, 3)))
    )
    before = PlanPools.of(woven([[a]]))
    (arriving,) = woven([[b]]).current
    arriving = replace(arriving, number=7, queries=())
    after = replace(woven([[a], [b]]), backfilling=frozenset({"b"}))
    layout = follow(before, after, {"b": Reader(None, (7,))}, 101, 90, {0: 99}, [arriving], 8)
    assert furthest_reader(c, BY_KEY, layout, 120, first_kept({}, layout, 120)) == Reader(102, (8,))
