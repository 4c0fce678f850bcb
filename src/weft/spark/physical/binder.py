"""A logical plan with the types of a stream: the native feeds of Spark, and the layout of the buckets."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import inf

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame

from weft.aggregates import AGGREGATES, BUILT_IN, BUILT_IN_KINDS, EVENT_TIME, ROWS, Component, Kind, components
from weft.aggregates.aggregate import ArgumentTypes
from weft.engine import FeedLayout, GroupingLayout, Layout, QueryLayout, TreeLayout
from weft.engine.layout import FilterBit
from weft.engine.project.java_text import FIRST_WITH_SHORTEST
from weft.model import ACQ, Edges
from weft.optimizer.placement.ungrouped import pin_buckets
from weft.plan import Feed, Plan
from weft.spark.physical.analyzer import AnalyzedStream
from weft.spark.physical.collations import refuse_collated_values
from weft.spark.physical.columns import ColumnAllocator
from weft.spark.physical.filter_classes import FilterClasses
from weft.spark.physical.guards import argument_guards
from weft.spark.physical.plan import NativeFeed, PhysicalPlan
from weft.spark.physical.query_binder import QueryBinder
from weft.spark.physical.signature import Signature
from weft.spark.physical.slicing import feed_slicing, micros
from weft.spark.physical.statistics import StreamStatistics
from weft.spark.session import AS_WEFT_WRITES, settings_for
from weft.sql import refuse

Groupings = Sequence[tuple[str, ...]]
"""The key expressions of groupings that have their numbers already, in this order."""


def bind_plan(
    plan: Plan,
    stream: AnalyzedStream,
    event_time: str,
    groupings: Groupings,
    statistics: StreamStatistics,
    buckets: int = 1,
) -> PhysicalPlan:
    """`groupings` keep their numbers; others get the next ones. The statistics decide the classes of filters.
    Trees without keys are pinned to some of the `buckets`.
    """
    frame = stream.frame
    with stream.analyzer(plan.workload[0].source) as analyzer:
        with settings_for(frame.sparkSession, AS_WEFT_WRITES):
            time_type = dict(frame.dtypes).get(event_time) or frame.selectExpr(event_time).dtypes[0][1]
        event_micros = micros(event_time, time_type)
        pinned_buckets = pin_buckets(plan, buckets).bucket_of_query if buckets > 1 else {}
        queries = QueryBinder(analyzer, f"{event_micros} AS {EVENT_TIME}", _has_old_java(frame))
        ansi = frame.sparkSession.conf.get("spark.sql.ansi.enabled") == "true"
        binder = _FeedBinder(plan, queries, groupings, statistics, pinned_buckets, ansi)
        feeds = tuple(binder.feeds())
        analyzer.cache.forget_all_but(plan.workload.by_name)
    layout = Layout(
        kinds=_foreign_kinds(plan, feeds),
        feeds=tuple(feed.layout for feed in feeds),
        ansi=ansi,
        time_type=pa.timestamp("us", None if time_type == "timestamp_ntz" else "UTC"),
    )
    return PhysicalPlan(
        logical=plan,
        layout=layout,
        feeds=feeds,
        event_micros=event_micros,
        columns=binder.columns.columns,
        groupings=tuple(binder.groupings),
        buckets=buckets,
        classes=tuple(binder.classes),
    )


def _has_old_java(frame: DataFrame) -> bool:
    """Whether doubles become decimals by the digits that Java printed before 19."""
    jvm = frame.sparkSession._jvm
    assert jvm is not None  # Spark Connect is refused before
    return int(jvm.java.lang.Runtime.version().feature()) < FIRST_WITH_SHORTEST


@dataclass(frozen=True, slots=True)
class _Served:
    """The queries of one feed of the plan that share a class of filters, and what they need."""

    feed: Feed
    queries: tuple[ACQ, ...]
    all_queries: bool
    """Whether the feed has no others."""
    types: Mapping[str, str]
    """The Spark types of the arguments."""

    @property
    def components(self) -> tuple[Component, ...]:
        # Rows are counted in every feed: the count says which rows are late, and what the rate is.
        calls = [call for query in self.queries for call in query.calls]
        return tuple(dict.fromkeys((ROWS, *components(calls, self.types))))

    @property
    def signature(self) -> Signature:
        filters = {query.where for query in self.queries}
        return Signature(tuple(sorted(f for f in filters if f is not None)), None in filters)

    @property
    def edges(self) -> Edges:
        return self.feed.edges if self.all_queries else _edges(self.queries)


class _FeedBinder:
    """Gives physical columns to keys and arguments; feeds that need the same types use the same ones."""

    def __init__(
        self,
        plan: Plan,
        queries: QueryBinder,
        groupings: Groupings,
        statistics: StreamStatistics,
        pinned_buckets: Mapping[str, int],
        ansi: bool,
    ) -> None:
        self._plan = plan
        self._queries = queries
        self._statistics = statistics
        self._pinned_buckets = pinned_buckets
        self._ansi = ansi
        self._tree_numbers = count()
        self.columns = ColumnAllocator()
        self.classes: list[FilterClasses] = []
        self.groupings = {keys: number for number, keys in enumerate(groupings)}

    def feeds(self) -> list[NativeFeed]:
        """Those of the plan, each once for every class of its filters."""
        bound: list[NativeFeed] = []
        for feed in self._plan.feeds:
            queries = [self._plan.workload.by_name[n] for tree in feed.trees for n in self._plan.trees[tree].queries]
            self._queries.analyse(queries)
            for members in self._classes(queries, feed):
                types = self._argument_types(members)
                served = _Served(feed, tuple(members), len(members) == len(queries), types)
                bound.append(self._feed(len(bound), served))
        return bound

    def _classes(self, queries: Sequence[ACQ], feed: Feed) -> list[list[ACQ]]:
        """Queries whose filters share a pass; those without a filter go with the first."""
        filters = sorted({q.where for q in queries if q.where is not None})
        rows = float(self._plan.rate / feed.edge_rate) if feed.edge_rate else inf
        classes = FilterClasses.of(feed.keys, filters, rows, self._statistics.signatures_of)
        self.classes.append(classes)
        class_of: dict[str | None, int] = {filters[f]: i for i, each in enumerate(classes.classes) for f in each}
        members: list[list[ACQ]] = [[] for _ in classes.classes or (None,)]
        for query in queries:
            members[class_of.get(query.where, 0)].append(query)
        return members

    def _argument_types(self, queries: Sequence[ACQ]) -> ArgumentTypes:
        arguments = sorted({a for q in queries for call in q.calls for a in call.arguments})
        types = ArgumentTypes(self._queries.types(arguments), ansi=self._ansi)
        for query in queries:
            refuse_collated_values(query, {**self._queries.types(query.keys), **types})
            for call in query.calls:
                aggregate = AGGREGATES[call.function]
                reason = aggregate.refusal(call, types)
                if not aggregate.takes_void and any(types[argument] == "void" for argument in call.arguments):
                    reason = f"an argument of {call.function} is NULL and has no type"
                if reason is not None:
                    raise refuse(query, reason, "Use an argument of another type, or run this query outside weft.")
        return types

    def _feed(self, number: int, served: _Served) -> NativeFeed:
        keys, kept, signature = served.feed.keys, served.components, served.signature
        arguments = list(dict.fromkeys(a for c in kept for a in c.arguments))
        argument_columns = self.columns.arguments(self._queries.types(arguments))
        key_columns = self.columns.keys(self._queries.types(keys))
        columns = tuple(self.columns.component(c, argument_columns) for c in kept)
        grouping = GroupingLayout(
            self.groupings.setdefault(keys, len(self.groupings)),
            tuple(pa.field(f"k{i}", arrow) for i, arrow in enumerate(self._queries.key_types(served.queries[0]))),
        )
        layout = FeedLayout(
            number=number,
            grouping=grouping,
            edges=feed_slicing(served.edges, served.feed.edge_rate),
            key_columns=tuple(key_columns[k] for k in keys),
            words=signature.columns,
            components=kept,
            columns=columns,
            trees=tuple(self._trees(served, grouping, signature)),
        )
        return NativeFeed(
            layout,
            {column: key for key, column in key_columns.items()},
            {column: argument for argument, column in argument_columns.items()},
            signature,
            argument_guards(served.queries, served.types, signature),
        )

    def _trees(self, served: _Served, grouping: GroupingLayout, signature: Signature) -> Iterator[TreeLayout]:
        """The plan's trees with those queries that the feed serves; one per bucket that they are pinned to."""
        here = {query.name for query in served.queries}
        filters = _filter_bits(signature)
        for tree in (self._plan.trees[t] for t in served.feed.trees):
            parts: dict[int | None, list[ACQ]] = {}
            for name in tree.queries:
                if name in here:
                    parts.setdefault(self._pinned_buckets.get(name), []).append(self._plan.workload.by_name[name])
            for pinned_bucket, acqs in parts.items():
                queries = tuple(self._queries.bind(acq, served.types) for acq in acqs)
                edges = tree.edges if served.all_queries and len(parts) == 1 else _edges(acqs)
                yield TreeLayout(
                    number=next(self._tree_numbers),
                    grouping=grouping,
                    edges=edges,
                    components=tuple(dict.fromkeys(c for q in queries for call in q.calls for c in call.components)),
                    filters=filters,
                    words=len(signature.columns),
                    queries=queries,
                    serving={served.operator: served.technique for served in tree.serving},
                    begins=_begins(edges, queries),
                    pinned_bucket=pinned_bucket,
                )


def _filter_bits(signature: Signature) -> dict[str | None, FilterBit | None]:
    """Where a signature says whether a row passes each filter."""
    # Without bits there is one filter at most, and all rows of the feed pass it.
    single = (None,) if signature.bits else signature.filters or (None,)
    bits: dict[str | None, FilterBit | None] = dict.fromkeys(single)
    bits.update(signature.bits)
    return bits


def _foreign_kinds(plan: Plan, feeds: Sequence[NativeFeed]) -> dict[str, Kind]:
    """Kinds that weft does not define; executors need not be able to import their code."""
    kept = {c.kind: c.definition for feed in feeds for c in feed.layout.components}
    kinds = {name: kept[name] for name in sorted(kept.keys() - BUILT_IN_KINDS)}
    called = {call.function for acq in plan.workload for call in acq.calls} - BUILT_IN
    combining = {code.__module__ for kind in kinds.values() for code in kind.combine.code}
    lowering = {code.__module__ for name in called for code in AGGREGATES[name].lower.code}
    for module in combining | lowering:
        cloudpickle.register_pickle_by_value(sys.modules[module])
    return kinds


def _edges(queries: Sequence[ACQ]) -> Edges:
    return Edges.of(q.window for q in queries)


def _begins(edges: Edges, queries: Sequence[QueryLayout]) -> Edges | None:
    """Where windows begin, where that is not at every edge."""
    begins = Edges.of_begins(q.window for q in queries)
    return None if begins == edges else begins
