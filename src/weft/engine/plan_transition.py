"""One plan after another: which pools of partials go on, and from which each query also reads.

A plan changes between two batches. Rows of earlier batches lie in the trees of earlier plans, rows of later ones in the
new trees, each row in one tree that its query reads; and as every tree's slices respect the edges of all its queries,
a window takes slices from both sides without knowing of the change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from weft.engine.layout import GroupingLayout, Layout, QueryLayout, TreeLayout
from weft.model import Edges


@dataclass(frozen=True, slots=True)
class Reader:
    """What a query reads: windows from `since` on, of the rows in these pools; the last is where rows still come in."""

    since: int | None
    pools: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """What a plan leaves to its successor: the trees that take rows, those that only keep some, and who reads them."""

    current: tuple[TreeLayout, ...]
    older: tuple[TreeLayout, ...]
    readers: Mapping[str, Reader]

    @classmethod
    def of(cls, layout: Layout) -> Standing:
        readers = {q.name: Reader(q.since, (*q.older, tree.number)) for tree in layout.current for q in tree.queries}
        return cls(tuple(replace(t, queries=()) for t in layout.current), layout.older, readers)


def take_up(before: Standing, bound: Layout) -> Layout:
    """The layout that left this standing, of its queries as they are bound again: each where its rows came in.

    Which feed a tree had is not known, so this says what is kept and who reads it, and takes no rows.
    """
    inside: dict[int, list[QueryLayout]] = {}
    for query in bound.queries:
        *older, number = before.readers[query.name].pools
        read = replace(query, since=before.readers[query.name].since, older=tuple(older))
        inside.setdefault(number, []).append(read)
    trees = tuple(replace(tree, queries=tuple(inside.get(tree.number, ()))) for tree in before.current)
    feeds = tuple(replace(feed, trees=() if number else trees) for number, feed in enumerate(bound.feeds))
    return replace(bound, feeds=feeds, older=before.older)


def follow(
    before: Standing,
    after: Layout,
    joined: Mapping[str, Reader],
    cut: int | None,
    watermark: int | None,
    newest: Mapping[int, int],
    arriving: Sequence[TreeLayout] = (),
    given: int = 0,
) -> Layout:
    """`after` with trees numbered on from `before`, and every query reading on where it read.

    `joined` are the queries that are new with this plan, and what they see of the past. No row before `cut` has yet
    been given to a new tree; None: no row has come at all. `newest` is the last slice that each pool holds: those that
    the open windows have left behind are done. `arriving` are pools that no plan has had, for those who wait for them;
    who is fresh in `after` has waited, and its pools fill with this batch. Numbers below `given` were given before:
    partials of a tree that is gone may still be kept, and another one must not take them for its own.
    """
    older = {t.number for t in before.older}
    pools = (*before.current, *before.older, *arriving)

    def still_read(query: QueryLayout) -> Reader:
        reader = before.readers[query.name]
        if watermark is None or query.name in after.held | after.fresh:
            return reader
        opened = query.first_open(after.closed(watermark))
        done = {p for p in older if p not in newest or newest[p] < opened}
        return replace(reader, pools=tuple(p for p in reader.pools if p not in done))

    readers = {q.name: joined.get(q.name) or still_read(q) for q in after.queries}
    numbers = _numbers(before, after, readers, max(given, 1 + max((t.number for t in pools), default=-1)))
    going = {t.number: t.since for t in before.current}

    def successor(query: QueryLayout, number: int) -> QueryLayout:
        reader = readers[query.name]
        return replace(query, since=reader.since, older=tuple(p for p in reader.pools if p != number))

    def renewed(tree: TreeLayout) -> TreeLayout:
        number = numbers[tree.number]
        queries = tuple(successor(q, number) for q in tree.queries)
        return replace(tree, number=number, since=going.get(number, cut), queries=queries)

    feeds = tuple(replace(feed, trees=tuple(map(renewed, feed.trees))) for feed in after.feeds)
    read = {number for feed in feeds for t in feed.trees for q in t.queries for number in q.older}
    left = tuple(t for t in pools if t.number in read)
    return replace(after, feeds=feeds, older=left, fresh=after.fresh | joined.keys())


def serves(tree: TreeLayout, query: QueryLayout, grouping: GroupingLayout) -> bool:
    """Whether the tree's partials hold what the query needs: its groups, its filter, its components, and its edges."""
    return (
        tree.grouping == grouping
        and query.filter in tree.filters
        and all(c in tree.components for call in query.calls for c in call.components)
        and tree.edges.contains(Edges.of([query.window]))
        and (tree.begins is None or tree.begins.contains(Edges.of_begins([query.window])))
    )


def keep_on(kept: Mapping[int, int], layout: Layout, watermark: int) -> dict[int, int]:
    """The first slice from which on each tree has all that came to it, after a batch by this layout.

    It never goes back: what was dropped is not there again when a query joins that would have needed it.
    """
    return {tree: max(first, kept.get(tree, first)) for tree, first in layout.horizons(watermark).items()}


def pasts(layout: Layout, watermark: int) -> set[Reader]:
    """Pools that together have all rows, each from its `since` on: trees that take rows, and what queries read.

    A query reads no more the pools that its own open windows are done with (see `follow`), though one with longer
    windows may have the others kept from long before: its pools have all rows of those windows, and no more is sure.
    Who waits for its past has pools that are still to be filled.
    """
    found = {Reader(tree.since, (tree.number,)) for tree in layout.current}
    standing, closed = Standing.of(layout).readers, layout.closed(watermark)
    for query in layout.queries:
        if query.name not in layout.held:
            since, opened = standing[query.name].since, query.first_open(closed)
            found.add(replace(standing[query.name], since=opened if since is None else max(since, opened)))
    return found


def reach_back(
    query: QueryLayout, grouping: GroupingLayout, layout: Layout, watermark: int, kept: Mapping[int, int]
) -> Reader | None:
    """What a new query can see of the past: the slices that reach furthest back of those that will do.

    `kept` is what batches left (see `keep_on`).
    """
    found = [take_over(query, grouping, layout, past, watermark, kept) for past in pasts(layout, watermark)]
    return min((r for r in found if r is not None), key=lambda r: (r.since, r.pools), default=None)


def take_over(
    query: QueryLayout,
    grouping: GroupingLayout,
    layout: Layout,
    reader: Reader,
    watermark: int,
    kept: Mapping[int, int],
) -> Reader | None:
    """What a query sees that reads what another does, if all of that will do for it too."""
    trees = {tree.number: tree for tree in layout.trees}
    if not reader.pools or not all(n in trees and serves(trees[n], query, grouping) for n in reader.pools):
        return None
    # A pool that no batch has filled yet lacks nothing.
    known = [kept[n] for n in reader.pools if n in kept]
    complete = max(known if reader.since is None else [*known, reader.since], default=layout.closed(watermark))
    first = _first_whole(query, [trees[n] for n in reader.pools], complete, layout.closed(watermark))
    return Reader(first, reader.pools)


def _first_whole(query: QueryLayout, trees: Iterable[TreeLayout], complete: int, settled: int) -> int:
    """The begin of the first window whose slices are all there, none of them grown together beyond its end."""
    window = query.window
    first = window.first_begun(complete)
    if any(t.begins is not None and not t.begins.contains(Edges.of([window])) for t in trees):
        first = max(first, window.last_ended(settled) + 1)
    return window.begin(first)


def _numbers(before: Standing, after: Layout, readers: Mapping[str, Reader], following: int) -> dict[int, int]:
    """A tree whose partials hold the same as those of a former tree goes on with its pool; others get numbers from
    `following` on.

    Not where a query of another tree reads the pool as well: it would see the rows that come twice. Nor where a query
    has moved in: the pool and the one that it comes from hold the same rows.
    """
    pools = {_contents(t): t.number for t in before.current}
    numbers: dict[int, int] = {}
    for tree in after.current:
        number = pools.pop(_contents(tree), None)
        if number is None or not _may_go_on(number, {q.name for q in tree.queries}, readers.items()):
            number = following
            following += 1
        numbers[tree.number] = number
    return numbers


def _may_go_on(number: int, inside: set[str], readers: Iterable[tuple[str, Reader]]) -> bool:
    return all(
        not reader.pools or number in reader.pools if name in inside else number not in reader.pools
        for name, reader in readers
    )


def _contents(tree: TreeLayout) -> tuple[object, ...]:
    filters = tuple(sorted(tree.filters.items(), key=repr))
    return (tree.grouping, tree.edges, tree.begins, tree.components, filters, tree.words)
