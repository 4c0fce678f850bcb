"""Groupings by bounded tables inside Spark's tasks: rows go through them once, partials leave, Spark merges those.

Slices and words of signatures are attributes like keys are, so one table's attributes are within another's wherever it
can be fed from it. What leaves a feed's table has the columns of native partials.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from weft.aggregates import Component
from weft.aggregates.kind import TableOperation
from weft.engine.partial.hash_tables import Cascade, CascadeTable, Out, Slot, bucket_bytes
from weft.optimizer.phantoms import (
    Choice,
    ChoiceStep,
    Configuration,
    Flows,
    GroupStatistics,
    ProbeCosts,
    Relation,
    TableNode,
    allocate,
    choose,
    estimate,
    show,
)
from weft.spark.physical.columns import PhysicalColumns
from weft.spark.physical.expressions import Texts, from_rows
from weft.spark.physical.tables import NativeFeed
from weft.spark.worker import freeze_what_stays

SENT = 16_384
"""Partials that leave together."""

_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})
_REAL = frozenset({"float", "double"})
_TIMES = frozenset({"boolean", "date", "timestamp", "timestamp_ntz"})
_NUMBERS = _WHOLE | _REAL
_FIXED = _NUMBERS | _TIMES
_SUMS = frozenset({TableOperation.SUM})
_BITS = frozenset({TableOperation.ALL_BITS, TableOperation.ANY_BIT, TableOperation.ODD_BITS})
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")

LONG_DIGITS = 18
"""Digits of a decimal that 64 bits hold."""

SUM_DIGITS = 10
"""Digits that a sum of decimals has more, in Spark."""


@dataclass(frozen=True, slots=True)
class HashTables:
    """Tables for some feeds, chosen for a memory, and the columns that they read."""

    feeds: tuple[NativeFeed, ...]
    found: Choice
    inputs: Mapping[str, str]
    """The text of each column that the tables read."""
    roots: tuple[CascadeTable, ...]
    dictionary_bytes: int
    emptying: float
    """What a row costs of emptying the feeds' tables at the end of a task: each group leaves once at least."""
    emptying_phantoms: float

    @property
    def cost(self) -> float:
        """A row's, in seconds of a core, without its way to the tables."""
        return self.found.cost + self.emptying + self.emptying_phantoms

    @property
    def unshared(self) -> float:
        return self.found.unshared + self.emptying

    def explain(self, row: float) -> list[str]:
        """What feeds what; a row's cost is that of the tables alone."""
        tables = [table for root in self.roots for table in root.walk()]
        cost, unshared = (f"{1e9 * seconds:.0f}" for seconds in (self.cost, self.unshared))
        return [
            f"  tables  {self.configuration}   a row costs {cost} ns, {unshared} without phantoms, "
            f"and {1e9 * row:.0f} to come there",
            f"  buckets  {', '.join(f'{table.buckets:,}' for table in tables)}",
        ]

    @property
    def configuration(self) -> str:
        """By keys alone: slices and signatures tell groups apart too, and would fill the line."""
        return " ".join(map(self._told, self.found.configuration.raw))

    def fed_by(self) -> dict[int, Relation]:
        """The keys of the table above that of each feed, by the feed's number."""
        above = {child.relation: table for table in self.found.configuration.tables for child in table.children}
        fed = {feed.layout.number: above.get(relation(feed)) for feed in self.feeds}
        return {number: self._keys(table) for number, table in fed.items() if table is not None}

    def _told(self, table: TableNode) -> str:
        below = " ".join(map(self._told, table.children))
        star = "*" if table.asked and table.children else ""
        return f"{show(self._keys(table))}{star}({below})" if below else show(self._keys(table))

    def _keys(self, table: TableNode) -> Relation:
        fed = {below.relation for below in table.walk() if below.asked}
        return frozenset(key for feed in self.feeds if relation(feed) in fed for key in feed.keys.values())


def tabled(feed: NativeFeed, bound: PhysicalColumns) -> bool:
    """Whether a table can hold all that the feed keeps."""
    types = {e: bound.argument_types[c] for c, e in feed.arguments.items()}
    return all(_holds(component, types) for component in feed.layout.components)


def _holds(component: Component, types: Mapping[str, str]) -> bool:
    slot = component.definition.table
    if slot is None or slot.row is None or slot.boolean:
        return slot is not None
    argument = types[component.arguments[0]]
    if (digits := _DECIMAL.fullmatch(argument)) is not None:
        return slot.operation not in _BITS and int(digits[1]) <= LONG_DIGITS
    return argument in (_WHOLE if slot.operation in _BITS else _NUMBERS if slot.operation in _SUMS else _FIXED)


def attributes(feed: NativeFeed) -> Texts:
    """The text of each column that tells the feed's partials apart."""
    columns = PhysicalColumns(key_types=dict.fromkeys(feed.keys, ""))
    texts = from_rows(feed.layout.number, feed, columns, len(feed.signature.columns))
    return {name: text for name, text in texts.items() if name != "feed"}


def relation(feed: NativeFeed) -> Relation:
    return frozenset(attributes(feed).values())


def make_lfta(
    feeds: Sequence[NativeFeed],
    bound: PhysicalColumns,
    counts: Mapping[Relation, float],
    rows: int,
    flows: Flows,
    memory: int,
    prices: ProbeCosts,
    how: str = "auto",
) -> HashTables:
    """Phantoms and buckets for these feeds in so many bytes, by the groups that so many rows had.

    `how` is "auto", "always" or "never", as in `Phantoms`.
    """
    slots = {feed.layout.number: _slots(feed, bound) for feed in feeds}
    most = len({slot for of in slots.values() for slot in of.values()}) + 1
    keys = {text for feed in feeds for c, text in attributes(feed).items() if bound.key_types.get(c) not in _FIXED}
    keys -= {text for feed in feeds for c, text in attributes(feed).items() if c not in feed.keys}
    dictionaries = memory // 2 if keys else 0
    widths = _Widths(most)
    statistics = GroupStatistics(counts, flows, widths=widths.of(counts))
    found = _chosen(dict.fromkeys(relation(feed) for feed in feeds), statistics, memory - dictionaries, prices, how)
    everything = widths.of(found.configuration.relations)
    buckets = found.allocated.buckets(replace(statistics, widths=everything))
    groups = estimate(found.configuration.relations, counts, rows)
    # Whatever its buckets, each group leaves a table once at least: what a phantom is emptied of throws others out.
    left = {table: groups[table.relation] for table in found.configuration.tables}
    answered = sum(number for table, number in left.items() if table.asked) * prices.eviction
    fed = sum(number * len(table.children) for table, number in left.items()) * prices.probe
    emptying = answered / max(1, rows), fed / max(1, rows)
    return _build(feeds, found, buckets, slots, dictionaries, emptying)


def _chosen(
    queries: Iterable[Relation], statistics: GroupStatistics, memory: float, prices: ProbeCosts, how: str
) -> Choice:
    asked = tuple(queries)
    if how == "auto":
        return choose(asked, statistics, memory, prices)
    everything: Relation = frozenset().union(*asked)
    parents = {query: everything if how == "always" and query != everything else None for query in asked}
    if how == "always":
        parents.setdefault(everything, None)
    allocated = allocate(Configuration.of(parents, asked), statistics, memory, prices)
    return Choice(allocated, (ChoiceStep(None, allocated.cost),))


@dataclass(frozen=True, slots=True)
class _Widths:
    """Bytes of a bucket: as many as if each table held everything."""

    slots: int

    def of(self, relations: Iterable[Relation]) -> dict[Relation, float]:
        return {r: float(bucket_bytes(len(r), self.slots)) for r in relations}


def _slots(feed: NativeFeed, bound: PhysicalColumns) -> dict[str, Slot]:
    """By the feed's column; arguments stand for their texts here."""
    types = {e: bound.argument_types[c] for c, e in feed.arguments.items()}
    found = {}
    for component, (name,) in zip(feed.layout.components, feed.layout.columns, strict=True):
        slot = component.definition.table
        assert slot is not None, f"a table cannot hold {component.kind}"
        if slot.row is None:
            found[name] = Slot(slot.operation, None)
        else:
            real = not slot.boolean and types[component.arguments[0]] in _REAL
            found[name] = Slot(slot.operation, slot.row.format(*component.arguments), real)
    return found


LATEST_SLOT = Slot(TableOperation.GREATEST, "latest")


def _build(
    feeds: Sequence[NativeFeed],
    found: Choice,
    buckets: Mapping[Relation, int],
    slots: Mapping[int, Mapping[str, Slot]],
    dictionaries: int,
    emptying: tuple[float, float],
) -> HashTables:
    texts = dict.fromkeys(text for feed in feeds for text in attributes(feed).values())
    names = {text: f"x{place}" for place, text in enumerate(texts)}
    arguments = dict.fromkeys(slot.argument for of in slots.values() for slot in of.values() if slot.argument)
    read = {text: f"y{place}" for place, text in enumerate(arguments)}

    def named(slot: Slot) -> Slot:
        return slot if slot.argument is None else replace(slot, argument=read[slot.argument])

    outs: dict[Relation, list[Out]] = {}
    for feed in feeds:
        columns = {column: names[text] for column, text in attributes(feed).items()}
        kept = {column: named(slot) for column, slot in slots[feed.layout.number].items()}
        outs.setdefault(relation(feed), []).append(Out(feed.layout.number, columns, {**kept, "latest": LATEST_SLOT}))

    def table(spec: TableNode) -> CascadeTable:
        children = tuple(map(table, spec.children))
        mine = tuple(outs.get(spec.relation, ()))
        held = [slot for out in mine for slot in out.slots.values()]
        held += [slot for child in children for slot in child.slots]
        by = tuple(sorted(names[text] for text in spec.relation))
        return CascadeTable(by, tuple(dict.fromkeys(held)), buckets[spec.relation], mine, children)

    inputs = {name: text for text, name in (names | read).items()}
    return HashTables(tuple(feeds), found, inputs, tuple(map(table, found.configuration.raw)), dictionaries, *emptying)


def through_tables(timed: DataFrame, lfta: HashTables, columns: PhysicalColumns, words: int, last: Texts) -> DataFrame:
    """timed     (columns..., event time in microseconds)
    partials  (feed, slice, words..., keys..., latest, components...), some of one group
    """
    read = {**lfta.inputs, "latest": last.get("latest", "CAST(NULL AS BIGINT)")}
    rows = timed.selectExpr(*(f"{text} AS {name}" for name, text in read.items()))
    types = dict(rows.dtypes)
    tables = [table for root in lfta.roots for table in root.walk()]
    slots = {column: slot for table in tables for out in table.outs for column, slot in out.slots.items()}
    sent = {"feed": "int", "slice": "bigint", **{f"w{i}": "bigint" for i in range(words)}, **columns.key_types}
    sent |= {column: _type(slot, types) for column, slot in slots.items() if column != "latest" or last}
    ddl = ", ".join(f"`{name}` {spark_type}" for name, spark_type in sent.items())
    schema = to_arrow_schema(StructType.fromDDL(ddl), timezone="UTC")
    return rows.mapInArrow(HashTableTask(lfta.roots, schema, lfta.dictionary_bytes).run, ddl)


def _type(slot: Slot, types: Mapping[str, str]) -> str:
    """As Spark's aggregate has it; a sum of integers and of truth values is a bigint."""
    if slot.argument is None:
        return "bigint"
    argument = types[slot.argument]
    if slot.operation not in _SUMS:
        return argument
    if (digits := _DECIMAL.fullmatch(argument)) is not None:
        return f"decimal({int(digits[1]) + SUM_DIGITS},{digits[2]})"
    return "double" if slot.real else "bigint"


@dataclass(frozen=True, slots=True)
class HashTableTask:
    """The tables of a task, emptied at its end."""

    roots: tuple[CascadeTable, ...]
    schema: pa.Schema
    dictionary_bytes: int

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        cascade = Cascade(self.roots, self.schema, self.dictionary_bytes)
        yield from _together(self._left(cascade, batches))
        freeze_what_stays()

    @staticmethod
    def _left(cascade: Cascade, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from cascade.take(batch)
        yield from cascade.empty()


def _together(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Fewer and larger ones: each costs Spark a message."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= SENT:
            yield pa.concat_batches(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pa.concat_batches(waiting)
