"""The transition from one plan to the next: which pools of partials continue, and which of them each query reads.

A plan changes between two batches. Rows of earlier batches lie in trees of former plans, rows of later batches in the
new trees, and each row lies in one tree that its query reads. The slices of every tree respect the edges of all its
queries, so a window takes slices from both sides and does not depend on the change.

A pool is the partials of one tree; it has the number of the tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from weft.engine.layout import GroupingLayout, Layout, QueryLayout, TreeLayout
from weft.model import Edges


@dataclass(frozen=True, slots=True)
class Reader:
    """What a query reads: windows that begin at `since` or later, from these pools; the last pool gets the new rows."""

    since: int | None
    pools: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlanPools:
    """What a plan leaves to the next one: trees that get rows, trees that only keep rows, and the queries' readers."""

    current: tuple[TreeLayout, ...]
    older: tuple[TreeLayout, ...]
    readers: Mapping[str, Reader]

    @classmethod
    def of(cls, layout: Layout) -> PlanPools:
        readers = {q.name: Reader(q.since, (*q.older, tree.number)) for tree in layout.current for q in tree.queries}
        return cls(tuple(replace(t, queries=()) for t in layout.current), layout.older, readers)


def restore_layout(before: PlanPools, bound: Layout) -> Layout:
    """The layout that left these pools, with its queries as they are bound again: each query in the tree of its rows.

    The feed of a tree is not stored. So the layout says which partials are kept and which queries read them, and it
    cannot take rows.
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
    before: PlanPools,
    after: Layout,
    joined: Mapping[str, Reader],
    cut: int | None,
    watermark: int | None,
    newest: Mapping[int, int],
    backfilled: Sequence[TreeLayout] = (),
    first_number: int = 0,
) -> Layout:
    """`after` with trees that are numbered on from `before`, and with every query reading the pools that it read.

    joined        the queries that are new with this plan, and the pools that they read
    cut           no row before it is in a new tree; None: there are no rows yet
    newest        the last slice of each pool: pools whose slices all end before the open windows are not read again
    backfilled    pools of backfills, which no plan has had; queries in `after.joining` get theirs with this batch
    first_number  lower numbers are taken: partials of a removed tree may still be stored, and no new tree may read them
    """
    pools = (*before.current, *before.older, *backfilled)
    readers = {q.name: joined.get(q.name) or _still_read(q, before, after, watermark, newest) for q in after.queries}
    numbers = _numbers(before, after, readers, max(first_number, 1 + max((t.number for t in pools), default=-1)))
    continued = {t.number: t.since for t in before.current}

    def with_pools(query: QueryLayout, number: int) -> QueryLayout:
        reader = readers[query.name]
        return replace(query, since=reader.since, older=tuple(p for p in reader.pools if p != number))

    def numbered(tree: TreeLayout) -> TreeLayout:
        number = numbers[tree.number]
        queries = tuple(with_pools(q, number) for q in tree.queries)
        return replace(tree, number=number, since=continued.get(number, cut), queries=queries)

    feeds = tuple(replace(feed, trees=tuple(map(numbered, feed.trees))) for feed in after.feeds)
    read = {number for feed in feeds for t in feed.trees for q in t.queries for number in q.older}
    older = tuple(t for t in pools if t.number in read)
    return replace(after, feeds=feeds, older=older, joining=after.joining | joined.keys())


def _still_read(
    query: QueryLayout, before: PlanPools, after: Layout, watermark: int | None, newest: Mapping[int, int]
) -> Reader:
    """The pools that a query has read until now, without those whose slices are all before its open windows."""
    reader = before.readers[query.name]
    if watermark is None or query.name in after.backfilling | after.joining:
        return reader
    opened = query.first_open(after.closed(watermark))
    expired = {t.number for t in before.older if t.number not in newest or newest[t.number] < opened}
    return replace(reader, pools=tuple(p for p in reader.pools if p not in expired))


def serves(tree: TreeLayout, query: QueryLayout, grouping: GroupingLayout) -> bool:
    """Whether the tree's partials have the query's groups, filter, components and edges."""
    return (
        tree.grouping == grouping
        and query.filter in tree.filters
        and all(c in tree.components for call in query.calls for c in call.components)
        and tree.edges.contains(Edges.of([query.window]))
        and (tree.begins is None or tree.begins.contains(Edges.of_begins([query.window])))
    )


def first_kept(kept: Mapping[int, int], layout: Layout, watermark: int) -> dict[int, int]:
    """Per tree the first slice from which it has all its rows, after a batch with this layout.

    It never moves back: dropped slices do not return when a query joins that needs them.
    """
    return {tree: max(first, kept.get(tree, first)) for tree, first in layout.horizons(watermark).items()}


def complete_readers(layout: Layout, watermark: int) -> set[Reader]:
    """Sets of pools that together have all rows since some time: the current trees, and the pools that queries read.

    A query does not read the pools that are older than its open windows (see `follow`), even if another query with
    longer windows keeps them. So its pools are complete only for its own open windows. The pools of a query that waits
    for its backfill are not complete.
    """
    readers = {Reader(tree.since, (tree.number,)) for tree in layout.current}
    by_query, closed = PlanPools.of(layout).readers, layout.closed(watermark)
    for query in layout.queries:
        if query.name not in layout.backfilling:
            since, opened = by_query[query.name].since, query.first_open(closed)
            readers.add(replace(by_query[query.name], since=opened if since is None else max(since, opened)))
    return readers


def furthest_reader(
    query: QueryLayout, grouping: GroupingLayout, layout: Layout, watermark: int, kept: Mapping[int, int]
) -> Reader | None:
    """Of the kept slices that serve a new query, those that reach furthest back; `kept` is from `first_kept`."""
    usable = [usable_reader(query, grouping, layout, r, watermark, kept) for r in complete_readers(layout, watermark)]
    return min((r for r in usable if r is not None), key=lambda r: (r.since, r.pools), default=None)


def usable_reader(
    query: QueryLayout,
    grouping: GroupingLayout,
    layout: Layout,
    reader: Reader,
    watermark: int,
    kept: Mapping[int, int],
) -> Reader | None:
    """The reader with the first window that it is complete for; None: some of its pools do not serve the query."""
    trees = {tree.number: tree for tree in layout.trees}
    if not reader.pools or not all(n in trees and serves(trees[n], query, grouping) for n in reader.pools):
        return None
    # A pool that has had no batch yet has dropped nothing.
    kept_from = [kept[n] for n in reader.pools if n in kept]
    complete = max(kept_from if reader.since is None else [*kept_from, reader.since], default=layout.closed(watermark))
    first = _first_complete(query, [trees[n] for n in reader.pools], complete, layout.closed(watermark))
    return Reader(first, reader.pools)


def _first_complete(query: QueryLayout, trees: Iterable[TreeLayout], complete: int, compacted: int) -> int:
    """The begin of the first window whose slices are all kept, and are not compacted across its end."""
    window = query.window
    first = window.first_begun(complete)
    if any(t.begins is not None and not t.begins.contains(Edges.of([window])) for t in trees):
        first = max(first, window.last_ended(compacted) + 1)
    return window.begin(first)


def _numbers(before: PlanPools, after: Layout, readers: Mapping[str, Reader], following: int) -> dict[int, int]:
    """The pool of each tree: a former pool if its partials have the same contents, else a number from `following` on.

    A pool is not continued if a query of another tree reads it too, because that query would read new rows twice. Nor
    if a query has moved into the tree, because the pool and the query's former pool hold the same rows.
    """
    pools = {_contents(t): t.number for t in before.current}
    numbers: dict[int, int] = {}
    for tree in after.current:
        number = pools.pop(_contents(tree), None)
        if number is None or not _may_continue(number, {q.name for q in tree.queries}, readers.items()):
            number = following
            following += 1
        numbers[tree.number] = number
    return numbers


def _may_continue(number: int, inside: set[str], readers: Iterable[tuple[str, Reader]]) -> bool:
    return all(
        not reader.pools or number in reader.pools if name in inside else number not in reader.pools
        for name, reader in readers
    )


def _contents(tree: TreeLayout) -> tuple[object, ...]:
    filters = tuple(sorted(tree.filters.items(), key=repr))
    return (tree.grouping, tree.edges, tree.begins, tree.components, filters, tree.words)
