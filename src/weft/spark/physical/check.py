"""The gate: looks at a finished physical plan, with every decision in it, and changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from weft.model import Edges
from weft.plan import PlanRejected
from weft.spark.physical.plan import FromRows, FromTables, HashTables, NativeTable, PhysicalPlan


def check_physical(plan: PhysicalPlan) -> None:
    """Raise `PlanRejected` with everything that is wrong."""
    # The later looks take queries and feeds for granted that the first ones have found.
    for look in (_queries, _feeds, _slices, _needs, _pools, _buckets, _partials):
        problems = list(look(plan))
        if problems:
            raise PlanRejected(f"this physical plan cannot run: {'; '.join(problems)}")


def _queries(plan: PhysicalPlan) -> Iterator[str]:
    """Every query is answered by one tree."""
    served = Counter(query.name for query in plan.layout.queries)
    wanted = plan.logical.workload.by_name
    yield from (f"query {name} is in no tree" for name in wanted if name not in served)
    yield from (f"query {name} is in {count} trees" for name, count in served.items() if count > 1)
    yield from (f"a tree has {name}, which is no query of the job" for name in served if name not in wanted)


def _feeds(plan: PhysicalPlan) -> Iterator[str]:
    """What Spark computes is what the buckets expect."""
    if [feed.layout for feed in plan.feeds] != list(plan.layout.feeds):
        yield "its native feeds are not those of the layout"
    numbers = Counter(feed.layout.number for feed in plan.feeds)
    yield from (f"{count} feeds have the number {number}" for number, count in numbers.items() if count > 1)
    trees = Counter(tree.number for tree in plan.layout.trees)
    yield from (f"{count} trees have the number {number}" for number, count in trees.items() if count > 1)
    if plan.classes and len(plan.classes) != len(plan.logical.feeds):
        yield f"filters of {len(plan.classes)} feeds are in classes, and the plan has {len(plan.logical.feeds)}"


def _slices(plan: PhysicalPlan) -> Iterator[str]:
    """No window begins or ends within a slice."""
    for feed in plan.layout.feeds:
        for tree in feed.trees:
            windows = Edges.of({query.window for query in tree.queries}) if tree.queries else tree.edges
            if windows != tree.edges and not tree.edges.contains(windows):
                yield f"windows begin or end within a slice of tree {tree.number}"
            if feed.edges != tree.edges and not feed.edges.contains(tree.edges):
                yield f"slices of tree {tree.number} begin or end within a slice of feed {feed.number}"


def _needs(plan: PhysicalPlan) -> Iterator[str]:
    """Feeds and trees have the filters and components that their queries need."""
    for feed in plan.feeds:
        kept = set(feed.layout.components)
        for tree in feed.layout.trees:
            if not kept.issuperset(tree.components):
                yield f"feed {feed.layout.number} does not make all components of tree {tree.number}"
            components = set(tree.components)
            for query in tree.queries:
                if query.filter not in tree.filters:
                    yield f"tree {tree.number} does not tell the rows of query {query.name} apart"
                if not components.issuperset(c for call in query.calls for c in call.components):
                    yield f"tree {tree.number} does not keep all components of query {query.name}"


def _pools(plan: PhysicalPlan) -> Iterator[str]:
    """Trees of former plans that queries still read are kept."""
    kept = {tree.number for tree in plan.layout.trees}
    for query in plan.layout.queries:
        yield from (f"query {query.name} reads tree {n}, which is not kept" for n in query.older if n not in kept)


def _buckets(plan: PhysicalPlan) -> Iterator[str]:
    for tree in plan.layout.current:
        if tree.pinned_bucket is not None and not 0 <= tree.pinned_bucket < plan.buckets:
            yield f"tree {tree.number} is in bucket {tree.pinned_bucket} of {plan.buckets}"


def _partials(plan: PhysicalPlan) -> Iterator[str]:
    choice, means = plan.partials.choice, plan.partials.means
    if choice is not None and len(choice.tables) != len(plan.feeds):
        yield f"roll-ups were chosen for {len(choice.tables)} feeds, and the plan has {len(plan.feeds)}"
    elif isinstance(means, FromTables):
        yield from _tables(plan, means)
    elif isinstance(means, HashTables):
        yield from _hash_tables(plan, means)
    else:
        yield from _rows(plan, means)


def _tables(plan: PhysicalPlan, means: FromTables) -> Iterator[str]:
    """Every feed is made from one table, which is finer than it."""
    made = Counter(feed.layout.number for table in means.tables for feed in table.feeds)
    yield from _each_once(plan, made)
    for number, table in enumerate(means.tables):
        yield from (f"table {number} {problem}" for problem in _table(table))


def _table(table: NativeTable) -> Iterator[str]:
    keys = set(table.keys.values())
    for feed in table.feeds:
        name = f"feed {feed.layout.number}"
        if len(table.feeds) > 1 and not feed.can_roll_up:
            yield f"feeds {name}, whose partials Spark cannot merge"
        if not keys.issuperset(feed.keys.values()):
            yield f"lacks keys of {name}"
        if table.edges != feed.layout.edges and not table.edges.contains(feed.layout.edges):
            yield f"cuts slices of {name}"
        if not set(table.signature.filters).issuperset(feed.signature.filters):
            yield f"lacks filters of {name}"
        if feed.signature.all_rows and not table.signature.all_rows:
            yield f"lacks rows of {name}"
        if not table.columns.keys() >= set(feed.layout.components):
            yield f"lacks components of {name}"


def _hash_tables(plan: PhysicalPlan, means: HashTables) -> Iterator[str]:
    """Feeds that have hash tables leave one of them each, and every table is finer than what it feeds."""
    tables = [table for root in means.roots for table in root.walk()]
    made = Counter(out.feed for table in tables for out in table.outputs)
    wanted = {feed.layout.number for feed in means.feeds}
    yield from (f"feed {number} leaves {made[number] or 'no'} hash table" for number in wanted if made[number] != 1)
    unknown = (made.keys() | wanted) - {feed.layout.number for feed in plan.feeds}
    yield from (f"a hash table makes feed {number}, which is not there" for number in sorted(unknown))
    for table in tables:
        if table.buckets < 1:
            yield "a hash table has no bucket"
        for child in table.children:
            if not set(table.attributes).issuperset(child.attributes) or not set(table.slots).issuperset(child.slots):
                yield f"a hash table by {', '.join(table.attributes)} cannot feed one by {', '.join(child.attributes)}"


def _rows(plan: PhysicalPlan, means: FromRows) -> Iterator[str]:
    """Only feeds whose rows can be partials are sent as rows, and in one way."""
    feeds = {feed.layout.number: feed for feed in plan.feeds}
    for number in sorted(means.single_rows | means.exchanged):
        if number not in feeds:
            yield f"feed {number} is sent as rows and is not there"
        elif not feeds[number].can_send_rows:
            yield f"feed {number} is sent as rows, which are no partials of it"
    yield from (f"feed {number} is sent as rows twice" for number in sorted(means.single_rows & means.exchanged))
    pinned = sorted(means.exchanged & plan.pinned_buckets.keys())
    yield from (f"feed {number} has buckets of its own and is exchanged" for number in pinned)


def _each_once(plan: PhysicalPlan, made: Counter[int]) -> Iterator[str]:
    numbers = {feed.layout.number for feed in plan.feeds}
    yield from (f"feed {number} is in no table" for number in sorted(numbers - made.keys()))
    yield from (f"feed {number} is in {count} tables" for number, count in sorted(made.items()) if count > 1)
    yield from (f"a table has feed {number}, which is not there" for number in sorted(made.keys() - numbers))
