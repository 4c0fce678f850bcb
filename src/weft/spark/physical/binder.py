"""Binding: a plan meets the types of a stream, and Spark itself says what every expression is.

Spark analyses each query, on an empty table with the stream's schema: what it refuses is refused here, and the names
and types of the answers are the ones it gives. Queries that differ only in their window are analysed once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from math import inf

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructType

from weft.aggregates import AGGREGATES, BUILT_IN, BUILT_IN_KINDS, EVENT_TIME, ROWS, Kind, components
from weft.engine import CallLayout, FeedLayout, GroupingLayout, Layout, QueryLayout, TreeLayout
from weft.engine.layout import FilterBit
from weft.engine.project import CannotEvaluate, Typed, bind
from weft.model import ACQ, Call, Edges, Expression, Output, Window
from weft.optimizer.placement.ungrouped import place_homes
from weft.plan import Feed, Plan
from weft.spark.physical.analyzer import Analyzer, analysis
from weft.spark.physical.columns import PhysicalColumns
from weft.spark.physical.filter_classes import FilterClasses
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.physical.rollup import Phantoms
from weft.spark.physical.signature import Signature
from weft.spark.physical.slicing import feed_slicing, micros
from weft.spark.physical.tables import NativeFeed
from weft.sql import refuse, standing_in


def bind_plan(
    plan: Plan,
    stream: DataFrame,
    event_time: str,
    groupings: Sequence[tuple[str, ...]] = (),
    phantoms: Phantoms | None = None,
    buckets: int = 1,
) -> PhysicalPlan:
    """`groupings` keep the numbers that they have in this order; others get the next ones. Trees without keys are
    placed in `buckets`.
    """
    spark = stream.sparkSession
    with analysis(spark, stream.schema, plan.workload[0].source) as analyse:
        time_type = dict(stream.dtypes).get(event_time) or stream.selectExpr(event_time).dtypes[0][1]
        event_micros = micros(event_time, time_type)
        native = "timestamp_ntz" if time_type == "timestamp_ntz" else "timestamp"
        phantoms = phantoms or Phantoms()
        homes = place_homes(plan, buckets).nodes if buckets > 1 else {}
        binder = _Binder(plan, analyse, f"{event_micros} AS {EVENT_TIME}", groupings, stream, phantoms, homes)
        feeds = binder.feeds()
        analyse.known.forget_all_but(plan.workload.by_name)
        layout = Layout(
            kinds=_foreign_kinds(plan, feeds),
            feeds=tuple(f.layout for f in feeds),
            ansi=spark.conf.get("spark.sql.ansi.enabled") == "true",
            time_type=pa.timestamp("us", None if native == "timestamp_ntz" else "UTC"),
        )
        return PhysicalPlan(
            layout,
            tuple(feeds),
            event_micros,
            binder.columns,
            tuple(binder.groupings),
            phantoms=phantoms,
            classes=tuple(binder.classes),
        )


class _Binder:
    """Gives physical columns to keys and arguments; feeds that need the same types use the same ones."""

    def __init__(
        self,
        plan: Plan,
        analyse: Analyzer,
        event_micros: str,
        groupings: Sequence[tuple[str, ...]],
        stream: DataFrame,
        phantoms: Phantoms,
        homes: Mapping[str, int],
    ) -> None:
        self._plan = plan
        self._homes = homes
        self._stream = stream
        self._phantoms = phantoms
        self._analyse = analyse
        self._event_micros = event_micros
        self.columns = PhysicalColumns()
        self.classes: list[FilterClasses] = []
        self._schemas: dict[ACQ | str, StructType] = {}
        self._numbers = count()
        self.groupings = {keys: number for number, keys in enumerate(groupings)}

    def feeds(self) -> list[NativeFeed]:
        """Those of the plan, each once for every class of its filters."""
        found: list[NativeFeed] = []
        for feed in self._plan.feeds:
            queries = [self._plan.workload.by_name[n] for tree in feed.trees for n in self._plan.trees[tree].queries]
            new = [query for query in queries if self._analyse.known.layout(query) is None]
            for query in new:
                shape = _shape(query)
                if shape not in self._schemas and shape not in self._analyse.known.shapes:
                    self._schemas[shape] = self._analyse.query(query, _asked(query))
            self._refuse_filters(new)
            self._refuse_chance(new)
            for some in self._classes(queries, feed):
                found.append(self._feed(len(found), feed, some, len(some) == len(queries)))
        return found

    def _classes(self, queries: Sequence[ACQ], feed: Feed) -> list[list[ACQ]]:
        """Queries whose filters share a pass; those without a filter go with the first."""
        filters = sorted({q.where for q in queries if q.where is not None})
        rows = float(self._plan.rate / feed.edge_rate) if feed.edge_rate else inf
        known = partial(self._phantoms.occurrences, self._stream)
        classing = FilterClasses.of(feed.keys, filters, rows, known)
        self.classes.append(classing)
        place: dict[str | None, int] = {filters[f]: i for i, each in enumerate(classing.classes) for f in each}
        found: list[list[ACQ]] = [[] for _ in classing.classes or (None,)]
        for query in queries:
            found[place.get(query.where, 0)].append(query)
        return found

    def _feed(self, number: int, feed: Feed, queries: Sequence[ACQ], whole: bool) -> NativeFeed:
        raw = sorted({a for q in queries for call in q.calls for a in call.arguments})
        types = {a: spark for a, (spark, _) in zip(raw, self._analyse.types(raw, self._event_micros), strict=True)}
        for query in queries:
            for reason in (AGGREGATES[call.function].refusal(call, types) for call in query.calls):
                if reason is not None:
                    raise refuse(query, reason, "Cast the argument, or run this query outside weft.")
        # Rows are counted in every feed: late rows are told by it, and so is the rate.
        kept = tuple(dict.fromkeys((ROWS, *components([c for q in queries for c in q.calls], types))))
        arguments = list(dict.fromkeys(a for c in kept for a in c.arguments))
        argument_columns = self.columns.arguments(self._types(arguments))
        key_columns = self.columns.keys(self._types(feed.keys))
        key_types = self._analyse.types(feed.keys, self._event_micros)
        columns = tuple(self.columns.component(c, argument_columns) for c in kept)
        signature = Signature(
            tuple(sorted({q.where for q in queries if q.where is not None})), any(q.where is None for q in queries)
        )
        bits, words = signature.bits, signature.columns
        grouping = GroupingLayout(
            self.groupings.setdefault(feed.keys, len(self.groupings)),
            tuple(pa.field(f"k{i}", arrow) for i, (_, arrow) in enumerate(key_types)),
        )
        # Without bits there is one filter at most, and all rows of the feed pass it.
        places: dict[str | None, FilterBit | None] = dict.fromkeys(signature.filters or (None,))
        if bits:
            places = dict.fromkeys((None,))
            places.update(bits)
        layout = FeedLayout(
            number=number,
            grouping=grouping,
            edges=feed_slicing(feed.edges if whole else _edges(queries), feed.edge_rate),
            key_columns=tuple(key_columns[k] for k in feed.keys),
            words=words,
            components=kept,
            columns=columns,
            trees=tuple(self._trees(feed, queries, whole, grouping, places, len(words), types)),
        )
        return NativeFeed(
            layout,
            {column: key for key, column in key_columns.items()},
            {column: argument for argument, column in argument_columns.items()},
            signature,
        )

    def _refuse_filters(self, queries: Sequence[ACQ]) -> None:
        """What Spark would not filter by; a query's own text is asked only where there is something to find."""
        filtered = {q.where: q for q in queries if q.where is not None}
        if not self._analyse.filters(list(filtered), self._event_micros):
            for query in filtered.values():
                self._analyse.query(query, _asked(query))

    def _refuse_chance(self, queries: Sequence[ACQ]) -> None:
        """One look at all expressions, and at each query's only where there is something to find."""
        found = {
            q.name: [e for e in (*q.keys, q.where, *(e for c in q.calls for e in (*c.arguments, c.condition))) if e]
            for q in queries
        }
        if self._analyse.deterministic(sorted({e for expressions in found.values() for e in expressions})):
            return
        for query in queries:
            for expression in found[query.name]:
                if not self._analyse.deterministic([expression]):
                    raise refuse(
                        query,
                        f"{expression} gives other values each time that it is asked, so a repeated batch would differ",
                        "Compute it before the stream is woven, as a column.",
                        fragment=expression,
                    )

    def _types(self, expressions: Sequence[str]) -> dict[str, str]:
        found = self._analyse.types(expressions, self._event_micros)
        return {e: spark for e, (spark, _) in zip(expressions, found, strict=True)}

    def _trees(
        self,
        feed: Feed,
        served: Sequence[ACQ],
        whole: bool,
        grouping: GroupingLayout,
        filters: Mapping[str | None, FilterBit | None],
        words: int,
        types: Mapping[str, str],
    ) -> Iterator[TreeLayout]:
        """The plan's trees, with those of their queries that the feed serves; one for each of their homes."""
        here = {q.name for q in served}
        for tree in (self._plan.trees[t] for t in feed.trees):
            parts: dict[int | None, list[ACQ]] = {}
            for name in tree.queries:
                if name in here:
                    parts.setdefault(self._homes.get(name), []).append(self._plan.workload.by_name[name])
            serving = {served.operator: served.technique for served in tree.serving}
            for home, acqs in parts.items():
                queries = tuple(self._query(acq, types) for acq in acqs)
                used = tuple(dict.fromkeys(c for q in queries for call in q.calls for c in call.components))
                edges = tree.edges if whole and len(parts) == 1 else _edges(acqs)
                begins = _begins(edges, queries)
                number = next(self._numbers)
                yield TreeLayout(number, grouping, edges, used, filters, words, queries, serving, begins, home=home)

    def _query(self, acq: ACQ, types: Mapping[str, str]) -> QueryLayout:
        layout = self._analyse.known.layout(acq)
        if layout is None:
            shape, shapes = _shape(acq), self._analyse.known.shapes
            if shape not in shapes:
                shapes[shape] = self._bind_query(acq, self._schemas[shape], types)
            layout = replace(
                shapes[shape],
                name=acq.name,
                window=acq.window,
                filter=acq.where,
                asked=acq.asked,
                priority=acq.priority,
            )
            self._analyse.known.bound[acq.name] = acq, layout
        return layout

    def _bind_query(self, acq: ACQ, schema: StructType, types: Mapping[str, str]) -> QueryLayout:
        known = self._types_of_nodes(acq, schema)

        def call_layout(index: int, call: Call) -> CallLayout:
            aggregate = AGGREGATES[call.function]
            kept = aggregate.components(call, types)
            return CallLayout(aggregate.lower, kept, known[f"call {index}"], aggregate.numbers(call))

        try:
            outputs = tuple(bind(o.expression, lambda node: known[_label(node)]) for o in acq.outputs)
            having = None if acq.having is None else bind(acq.having, lambda node: known[_label(node)])
            if not self._analyse.in_utc and any(map(_needs_zone, (*outputs, *((having,) if having else ())))):
                raise CannotEvaluate("this reads a timestamp as text or as a date, which weft does in UTC only")
        except CannotEvaluate as error:
            raise refuse(acq, str(error), "Select the aggregates, and apply this to the answers.") from None
        return QueryLayout(
            name=acq.name,
            window=acq.window,
            filter=acq.where,
            calls=tuple(call_layout(i, call) for i, call in enumerate(acq.calls)),
            outputs=outputs,
            having=having,
            schema=pa.schema(
                [
                    pa.field(_named(o, f.name), to_arrow_type(f.dataType, timezone="UTC"), f.nullable)
                    for o, f in zip(acq.outputs, schema.fields, strict=True)
                ]
            ),
            asked=acq.asked,
            priority=acq.priority,
        )

    def _types_of_nodes(self, acq: ACQ, schema: StructType) -> dict[str, pa.DataType]:
        """The type of every node of the query's expressions, as Spark's analyser sees it."""
        roots = [o.expression for o in acq.outputs] + ([acq.having] if acq.having else [])
        nodes: dict[str, Expression] = {}
        for root in roots:
            for node in root.walk():
                nodes.setdefault(_label(node), node)
        known = {
            _label(o.expression): to_arrow_type(f.dataType, timezone="UTC")
            for o, f in zip(acq.outputs, schema.fields, strict=True)
        }
        missing = {label: node for label, node in nodes.items() if label not in known}
        if missing:
            items = ", ".join(f"{node.sql} AS c{i}" for i, node in enumerate(missing.values()))
            analysed = self._analyse.query(acq, f"SELECT {items} FROM {acq.source} GROUP BY {_grouped(acq)}")
            known.update(
                {label: to_arrow_type(f.dataType, timezone="UTC") for label, f in zip(missing, analysed, strict=True)}
            )
        return known


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


ANY_WINDOW = Window(1, 1)

WIDE = 100
"""Windows over a row from which Spark is not asked about them: it writes all of them down to look at a query."""


def _named(output: Output, by_spark: str) -> str:
    """As Spark names a column; what it does not know itself is named alike, after its text."""
    text = output.expression.sql
    return by_spark if standing_in(text) == text else output.name or text


def _asked(acq: ACQ) -> str:
    """The query as Spark is asked about it: its own text, or the same over windows that do not overlap."""
    if acq.shown.length <= WIDE * acq.shown.slide or not all(output.name for output in acq.outputs):
        return acq.spark_sql
    names = (output.name.replace("`", "``") for output in acq.outputs)
    items = ", ".join(f"{o.expression.sql} AS `{name}`" for o, name in zip(acq.outputs, names, strict=True))
    where = "" if acq.where is None else f" WHERE {acq.where}"
    having = "" if acq.having is None else f" HAVING {acq.having.sql}"
    return f"SELECT {items} FROM {acq.source}{where} GROUP BY {_grouped(acq)}{having}"


def _grouped(acq: ACQ) -> str:
    return ", ".join([*acq.keys, f"window({acq.event_time}, '{acq.window.length} microseconds')"])


def _shape(acq: ACQ) -> ACQ | str:
    """Equal where names and types of the answers are: all but window and filter, or the text where it names them."""
    named = all(output.name for output in acq.outputs)
    return replace(acq, name="", window=ANY_WINDOW, where=None, asked=None, priority=0) if named else acq.spark_sql


def _needs_zone(node: Typed) -> bool:
    """Whether an instant meets a date, a text or a time without zone somewhere: what that means depends on the zone."""
    types = [node.type, *(arg.type for arg in node.args)]
    zoned = any(pa.types.is_timestamp(t) and t.tz is not None for t in types)
    local = any(
        pa.types.is_string(t) or pa.types.is_date(t) or (pa.types.is_timestamp(t) and t.tz is None) for t in types
    )
    return (zoned and local) or any(map(_needs_zone, node.args))


def _label(node: Expression) -> str:
    """What tells nodes apart: leaves by what they stand for, operations by their text."""
    return f"{node.op} {node.value}" if node.op in ("call", "key") else f"{node.op} {node.sql}"
