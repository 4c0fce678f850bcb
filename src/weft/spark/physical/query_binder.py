"""One query at a time: Spark's analysis of its expressions, and the layout of its answers.

Spark analyses each query on an empty table with the stream's schema: what it refuses is refused here, and it decides
the names and types of the answers. Queries that differ only in their window are analysed once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.types import DataType, NullType, StructType

from weft.aggregates import AGGREGATES
from weft.engine import CallLayout, QueryLayout
from weft.engine.project import CannotEvaluate, Typed, bind
from weft.model import ACQ, Call, Expression, Output, Window
from weft.spark.physical.analyzer import Analyzer
from weft.spark.physical.arrow_types import NoArrowType, arrow_type, has_map
from weft.spark.physical.collations import refuse_collated_answers
from weft.spark.physical.setting_concerns import BoundTypes
from weft.spark.sql_types import sql_type
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
            self._analyzer.settings.refuse_text(query, self._analyzer.schema)
            shape = self._shape(query)
            if shape not in self._schemas and shape not in self._analyzer.cache.shapes:
                self._schemas[shape] = self._analyzer.query(query, self._analysed_text(query))
        self._refuse_filters(new)
        self._refuse_chance(new)

    def types(self, expressions: Sequence[str]) -> dict[str, str]:
        """The Spark type of each scalar expression."""
        types = self._analyzer.types(expressions, self._event_micros)
        return {e: sql_type(type_) for e, type_ in zip(expressions, types, strict=True)}

    def key_types(self, acq: ACQ) -> list[pa.DataType]:
        """The Arrow types of a query's keys."""
        types = self._analyzer.types(acq.keys, self._event_micros)
        for key, type_ in zip(acq.keys, types, strict=True):
            if has_map(type_):
                reason = f"weft does not group by maps, and {key} has the type {type_.simpleString()}"
                raise refuse(acq, reason, "Group by elements of the map, such as m['key'].", key)
        return [_arrow_type(acq, type_, key) for key, type_ in zip(acq.keys, types, strict=True)]

    def bind(self, acq: ACQ, types: Mapping[str, str]) -> QueryLayout:
        """The layout of an analysed query; `types` are those of the arguments of its calls."""
        layout = self._analyzer.cache.layout(acq)
        if layout is None:
            shape, shapes = self._shape(acq), self._analyzer.cache.shapes
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
        settings = self._analyzer.settings

        def call_layout(index: int, call: Call) -> CallLayout:
            aggregate = AGGREGATES[call.function]
            kept = aggregate.components(call, types)
            return CallLayout(aggregate.lower, kept, node_types[f"call {index}"], aggregate.numbers(call))

        def typed(expression: Expression) -> Typed:
            return bind(expression, lambda node: node_types[_label(node)], settings.zone, old_java=self._old_java)

        try:
            outputs = tuple(typed(o.expression) for o in acq.outputs)
            having = None if acq.having is None else typed(acq.having)
        except CannotEvaluate as error:
            raise refuse(acq, str(error), "Select the aggregates, and apply this to the answers.") from None
        roots = outputs if having is None else (*outputs, having)
        before = self.types([acq.event_time, *acq.keys, *(a for call in acq.calls for a in call.arguments)])
        settings.refuse_types(acq, BoundTypes(roots, tuple(before.values())))
        return QueryLayout(
            name=acq.name,
            window=acq.window,
            filter=acq.where,
            calls=tuple(call_layout(i, call) for i, call in enumerate(acq.calls)),
            outputs=outputs,
            having=having,
            schema=_answer_schema(acq, schema),
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
        self._refuse_types(acq, schema)
        types = {
            _label(o.expression): _arrow_type(acq, f.dataType, o.expression.sql)
            for o, f in zip(acq.outputs, schema.fields, strict=True)
        }
        missing = {label: node for label, node in nodes.items() if label not in types}
        if missing:
            items = ", ".join(f"{node.sql} AS c{i}" for i, node in enumerate(missing.values()))
            analysed = self._analyzer.query(acq, f"SELECT {items} FROM {acq.source} GROUP BY {_grouped(acq)}")
            self._refuse_types(acq, analysed)
            for (label, node), f in zip(missing.items(), analysed, strict=True):
                # NULL may stand inside an expression; only as an answer it would need a type.
                is_null = isinstance(f.dataType, NullType)
                types[label] = pa.null() if is_null else _arrow_type(acq, f.dataType, node.sql)
        if acq.having is not None and types[_label(acq.having)] == pa.null():
            raise refuse(acq, "HAVING: NULL has no type here", "Write CAST(NULL AS BOOLEAN).", acq.having.sql)
        return types

    def _refuse_types(self, acq: ACQ, schema: StructType) -> None:
        """Refuse expressions over aggregates whose Spark types weft does not have."""
        refuse_collated_answers(acq, schema)
        types = tuple(field.dataType.simpleString() for field in schema)
        self._analyzer.settings.refuse_types(acq, BoundTypes((), types))

    def _shape(self, acq: ACQ) -> ACQ | str:
        """Equal for queries whose answers have the same names and types: all but window and filter, or the text."""
        named = all(output.name for output in acq.outputs)
        if not named or self._analyzer.settings.case_sensitive:
            return acq.spark_sql
        return replace(acq, name="", window=ANY_WINDOW, where=None, requested_window=None, priority=0)

    def _analysed_text(self, acq: ACQ) -> str:
        """The text that Spark analyses for the query: its own, or the same over windows that do not overlap."""
        narrow = acq.shown.length <= WIDE * acq.shown.slide
        if narrow or self._analyzer.settings.case_sensitive or not all(output.name for output in acq.outputs):
            return acq.spark_sql
        names = (output.name.replace("`", "``") for output in acq.outputs)
        items = ", ".join(f"{o.expression.sql} AS `{name}`" for o, name in zip(acq.outputs, names, strict=True))
        where = "" if acq.where is None else f" WHERE {acq.where}"
        having = "" if acq.having is None else f" HAVING {acq.having.sql}"
        return f"SELECT {items} FROM {acq.source}{where} GROUP BY {_grouped(acq)}{having}"

    def _refuse_filters(self, queries: Sequence[ACQ]) -> None:
        """Refuse filters that Spark refuses. All are analysed together, and one by one only if some are refused."""
        filtered = {q.where: q for q in queries if q.where is not None}
        if not self._analyzer.filters(list(filtered), self._event_micros):
            for query in filtered.values():
                self._analyzer.query(query, self._analysed_text(query))

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


def _arrow_type(acq: ACQ, data_type: DataType, text: str) -> pa.DataType:
    try:
        return arrow_type(data_type)
    except NoArrowType as error:
        cast = "Write CAST(NULL AS INT), or another type."
        way_out = cast if error.is_void else "Cast the argument to text or a number."
        raise refuse(acq, f"{text}: {error}", way_out, text) from None


def _answer_schema(acq: ACQ, schema: StructType) -> pa.Schema:
    """As Spark gives it. Files and tables tell columns apart by their names, whatever their case."""
    fields = [
        pa.field(_named(o, f.name), _arrow_type(acq, f.dataType, o.expression.sql), f.nullable)
        for o, f in zip(acq.outputs, schema.fields, strict=True)
    ]
    names = [field.name.lower() for field in fields]
    for field, name in zip(fields, names, strict=True):
        if names.count(name) > 1:
            reason = f"two columns of the answer are called {field.name}, and a sink could not tell them apart"
            raise refuse(acq, reason, "Give each column a name of its own, with AS.", field.name)
    return pa.schema(fields)


def _named(output: Output, by_spark: str) -> str:
    """The name that Spark gives the column; for functions that Spark lacks, the same rule: the text is the name."""
    text = output.expression.sql
    return by_spark if standing_in(text) == text else output.name or text


def _grouped(acq: ACQ) -> str:
    return ", ".join([*acq.keys, f"window({acq.event_time}, '{acq.window.length} microseconds')"])


def _label(node: Expression) -> str:
    """What tells nodes apart: leaves by what they stand for, operations by their text."""
    return f"{node.op} {node.value}" if node.op in ("call", "key") else f"{node.op} {node.sql}"
