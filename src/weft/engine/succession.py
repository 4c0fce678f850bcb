"""One plan after another: which pools of partials go on, and from which each query also reads.

A plan changes between two batches. Rows of earlier batches lie in the trees of earlier plans, rows of later ones in the
new trees, each row in one tree that its query reads; and as every tree's slices respect the edges of all its queries,
a window takes slices from both sides without knowing of the change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from weft.engine.layout import Layout, QueryLayout, TreeLayout


def follow(before: Layout, after: Layout, joined: Mapping[str, QueryLayout]) -> Layout:
    """`after` with trees numbered on from `before`, and every query reading on where it read.

    `joined` are the queries that are new with this plan, as `join` made them: what they see, and from where.
    """
    homes = {q.name: (tree, q) for tree in before.current for q in tree.queries}

    def read_before(name: str) -> set[int]:
        """The pools that hold what the query has seen so far."""
        if name in joined:
            return {*joined[name].older}
        tree, query = homes[name]
        return {tree.number, *query.older}

    readers = {q.name: read_before(q.name) for q in after.queries}
    numbers = _numbers(before, after, readers)

    def successor(query: QueryLayout, number: int) -> QueryLayout:
        since = (joined.get(query.name) or homes[query.name][1]).since
        return replace(query, since=since, older=tuple(sorted(readers[query.name] - {number})))

    feeds = tuple(
        replace(
            feed,
            trees=tuple(
                replace(t, number=numbers[t.number], queries=tuple(successor(q, numbers[t.number]) for q in t.queries))
                for t in feed.trees
            ),
        )
        for feed in after.feeds
    )
    read = {number for feed in feeds for t in feed.trees for q in t.queries for number in q.older}
    older = tuple(replace(t, queries=()) for t in before.trees if t.number in read)
    return replace(after, feeds=feeds, older=older, fresh=frozenset(joined))


def _numbers(before: Layout, after: Layout, readers: Mapping[str, set[int]]) -> dict[int, int]:
    """A tree whose partials hold the same as those of a former tree goes on with its pool; others get new numbers.

    Not where a query of another tree reads the pool as well: it would see the rows that come twice. Nor where a query
    has moved in: the pool and the one that it comes from hold the same rows.
    """
    pools = {_contents(t): t.number for t in before.current}
    following = 1 + max((t.number for t in before.trees), default=-1)
    numbers: dict[int, int] = {}
    for tree in after.current:
        number = pools.pop(_contents(tree), None)
        inside = {q.name for q in tree.queries}
        if number is None or any(
            (number not in read and read) if name in inside else number in read for name, read in readers.items()
        ):
            number = following
            following += 1
        numbers[tree.number] = number
    return numbers


def _contents(tree: TreeLayout) -> tuple[object, ...]:
    return (tree.grouping, tree.edges, tree.components, tuple(sorted(tree.filters.items(), key=repr)), tree.words)
