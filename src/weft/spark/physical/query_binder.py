"""One query at a time: Spark's analysis of its expressions, and the layout of its answers.

Spark analyses each query on an empty table with the stream's schema: what it refuses is refused here, and it decides
the names and types of the answers. Queries that differ only in their window are analysed once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructType

from weft.aggregates import AGGREGATES
from weft.engine import CallLayout, QueryLayout
from weft.engine.project import CannotEvaluate, Typed, bind
from weft.model import ACQ, Call, Expression, Output, Window
from weft.spark.physical.analyzer import Analyzer
from weft.sql import refuse, standing_in

ANY_WINDOW = Window(1, 1)

WIDE = 100
"""With more windows per row than this, another text is analysed: Spark's analysis writes out every window."""


class QueryBinder:
    """Binds queries to the types of a stream; `event_micros` is the extra column that expressions may read."""

    def __init__(self, analyzer: Analyzer, event_micros: str, old_java: bool) -> None:
        self._analyzer = analyzer
        self._event_micros = event_micros
        self._old_java = old_java
        self._schemas: dict[ACQ | str, StructType] = {}

    def analyse(self, queries: Sequence[ACQ]) -> None:
        """Refuse what Spark refuses, and what would give other answers in a repeated batch."""
        new = [query for query in queries if self._analyzer.cache.layout(query) is None]
        for query in new:
            shape = _shape(query)
            if shape not in self._schemas and shape not in self._analyzer.cache.shapes:
                self._schemas[shape] = self._analyzer.query(query, _analysed_text(query))
        self._refuse_filters(new)
        self._refuse_chance(new)

    def types(self, expressions: Sequence[str]) -> dict[str, str]:
        """The Spark type of each scalar expression."""
        types = self._analyzer.types(expressions, self._event_micros)
        return {e: spark for e, (spark, _) in zip(expressions, types, strict=True)}

    def arrow_types(self, expressions: Sequence[str]) -> list[pa.DataType]:
        return [arrow for _, arrow in self._analyzer.types(expressions, self._event_micros)]

    def bind(self, acq: ACQ, types: Mapping[str, str]) -> QueryLayout:
        """The layout of an analysed query; `types` are those of the arguments of its calls."""
        layout = self._analyzer.cache.layout(acq)
        if layout is None:
            shape, shapes = _shape(acq), self._analyzer.cache.shapes
            if shape not in shapes:
                shapes[shape] = self._bind_query(acq, self._schemas[shape], types)
            layout = replace(
                shapes[shape],
                name=acq.name,
                window=acq.window,
                filter=acq.where,
                requested_window=acq.requested_window,
                priority=acq.priority,
            )
            self._analyzer.cache.bound[acq.name] = acq, layout
        return layout

    def _bind_query(self, acq: ACQ, schema: StructType, types: Mapping[str, str]) -> QueryLayout:
        node_types = self._types_of_nodes(acq, schema)

        def call_layout(index: int, call: Call) -> CallLayout:
            aggregate = AGGREGATES[call.function]
            kept = aggregate.components(call, types)
            return CallLayout(aggregate.lower, kept, node_types[f"call {index}"], aggregate.numbers(call))

        def typed(expression: Expression) -> Typed:
            return bind(expression, lambda node: node_types[_label(node)], old_java=self._old_java)

        try:
            outputs = tuple(typed(o.expression) for o in acq.outputs)
            having = None if acq.having is None else typed(acq.having)
            if not self._analyzer.in_utc and any(map(_needs_zone, (*outputs, *((having,) if having else ())))):
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
            requested_window=acq.requested_window,
            priority=acq.priority,
        )

    def _types_of_nodes(self, acq: ACQ, schema: StructType) -> dict[str, pa.DataType]:
        """The type of every node of the query's expressions, as Spark's analyser sees it."""
        roots = [o.expression for o in acq.outputs] + ([acq.having] if acq.having else [])
        nodes: dict[str, Expression] = {}
        for root in roots:
            for node in root.walk():
                nodes.setdefault(_label(node), node)
        types = {
            _label(o.expression): to_arrow_type(f.dataType, timezone="UTC")
            for o, f in zip(acq.outputs, schema.fields, strict=True)
        }
        missing = {label: node for label, node in nodes.items() if label not in types}
        if missing:
            items = ", ".join(f"{node.sql} AS c{i}" for i, node in enumerate(missing.values()))
            analysed = self._analyzer.query(acq, f"SELECT {items} FROM {acq.source} GROUP BY {_grouped(acq)}")
            types.update(
                {label: to_arrow_type(f.dataType, timezone="UTC") for label, f in zip(missing, analysed, strict=True)}
            )
        return types

    def _refuse_filters(self, queries: Sequence[ACQ]) -> None:
        """Refuse filters that Spark refuses. All are analysed together, and one by one only if some are refused."""
        filtered = {q.where: q for q in queries if q.where is not None}
        if not self._analyzer.filters(list(filtered), self._event_micros):
            for query in filtered.values():
                self._analyzer.query(query, _analysed_text(query))

    def _refuse_chance(self, queries: Sequence[ACQ]) -> None:
        """Refuse expressions that are not deterministic. One analysis for all; one for each only if some are not."""
        expressions_of = {
            q.name: [e for e in (*q.keys, q.where, *(e for c in q.calls for e in (*c.arguments, c.condition))) if e]
            for q in queries
        }
        if self._analyzer.deterministic(sorted({e for expressions in expressions_of.values() for e in expressions})):
            return
        for query in queries:
            for expression in expressions_of[query.name]:
                if not self._analyzer.deterministic([expression]):
                    raise refuse(
                        query,
                        f"{expression} gives another value each time it is evaluated, so a repeated batch would differ",
                        "Compute it before the stream is woven, as a column.",
                        fragment=expression,
                    )


def _named(output: Output, by_spark: str) -> str:
    """The name that Spark gives the column; for functions that Spark lacks, the same rule: the text is the name."""
    text = output.expression.sql
    return by_spark if standing_in(text) == text else output.name or text


def _analysed_text(acq: ACQ) -> str:
    """The text that Spark analyses for the query: its own, or the same over windows that do not overlap."""
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
    """Equal for queries whose answers have the same names and types: all but window and filter, or the text."""
    named = all(output.name for output in acq.outputs)
    return (
        replace(acq, name="", window=ANY_WINDOW, where=None, requested_window=None, priority=0)
        if named
        else acq.spark_sql
    )


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
