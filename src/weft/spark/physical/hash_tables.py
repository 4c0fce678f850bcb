"""Which bounded tables inside Spark's tasks make the partials of feeds: phantoms, buckets, and what a row costs.

Slices and words of signatures are attributes like keys are, so one table's attributes are within another's wherever it
can be fed from it. What leaves a feed's table has the columns of native partials.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from weft.aggregates import Component
from weft.aggregates.kind import TableOperation
from weft.calibration.table_costs import TableCosts
from weft.engine.partial.hash_tables import CascadeTable, Out, Slot, bucket_bytes
from weft.optimizer.phantoms import (
    Choice,
    ChoiceStep,
    Configuration,
    GroupStatistics,
    ProbeCosts,
    Relation,
    TableNode,
    allocate,
    choose,
    estimate,
    show,
)
from weft.spark.options import Phantoming
from weft.spark.physical.columns import LATEST, PhysicalColumns
from weft.spark.physical.expressions import Texts, from_rows
from weft.spark.physical.statistics import GroupCounts
from weft.spark.physical.tables import NativeFeed

_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})
_REAL = frozenset({"float", "double"})
_TIMES = frozenset({"boolean", "date", "timestamp", "timestamp_ntz"})
_NUMBERS = _WHOLE | _REAL
_FIXED = _NUMBERS | _TIMES
_BITS = frozenset({TableOperation.ALL_BITS, TableOperation.ANY_BIT, TableOperation.ODD_BITS})
SUMS = frozenset({TableOperation.SUM})
DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")

LONG_DIGITS = 18
"""Digits of a decimal that 64 bits hold."""


@dataclass(frozen=True, slots=True)
class HashTables:
    """Tables for some feeds, chosen for a memory (LFTA), and the columns that they read."""

    feeds: tuple[NativeFeed, ...]
    choice: Choice
    flow: float
    """How many rows of a group follow each other."""
    row: float
    """What a row costs on its way to the tables."""
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
        return self.choice.cost + self.emptying + self.emptying_phantoms

    @property
    def unshared(self) -> float:
        return self.choice.unshared + self.emptying

    def explain(self) -> list[str]:
        """What feeds what; a row's cost is that of the tables alone."""
        tables = [table for root in self.roots for table in root.walk()]
        cost, unshared = (f"{1e9 * seconds:.0f}" for seconds in (self.cost, self.unshared))
        return [
            f"  tables  {self.configuration}   a row costs {cost} ns, {unshared} without phantoms, "
            f"and {1e9 * self.row:.0f} to come there",
            f"  buckets  {', '.join(f'{table.buckets:,}' for table in tables)}",
        ]

    @property
    def configuration(self) -> str:
        """By keys alone: slices and signatures tell groups apart too, and would fill the line."""
        return " ".join(map(self._told, self.choice.configuration.raw))

    def fed_by(self) -> dict[int, Relation]:
        """The keys of the table above that of each feed, by the feed's number."""
        above = {child.relation: table for table in self.choice.configuration.tables for child in table.children}
        fed = {feed.layout.number: above.get(relation(feed)) for feed in self.feeds}
        return {number: self._keys(table) for number, table in fed.items() if table is not None}

    def _told(self, table: TableNode) -> str:
        below = " ".join(map(self._told, table.children))
        star = "*" if table.asked and table.children else ""
        return f"{show(self._keys(table))}{star}({below})" if below else show(self._keys(table))

    def _keys(self, table: TableNode) -> Relation:
        fed = {below.relation for below in table.walk() if below.asked}
        return frozenset(key for feed in self.feeds if relation(feed) in fed for key in feed.keys.values())


def fits_table(feed: NativeFeed, bound: PhysicalColumns) -> bool:
    """Whether a table can hold all that the feed keeps."""
    types = {e: bound.argument_types[c] for c, e in feed.arguments.items()}
    return all(_holds(component, types) for component in feed.layout.components)


def _holds(component: Component, types: Mapping[str, str]) -> bool:
    slot = component.definition.table
    if slot is None or slot.row is None or slot.boolean:
        return slot is not None
    argument = types[component.arguments[0]]
    if (digits := DECIMAL.fullmatch(argument)) is not None:
        return slot.operation not in _BITS and int(digits[1]) <= LONG_DIGITS
    return argument in (_WHOLE if slot.operation in _BITS else _NUMBERS if slot.operation in SUMS else _FIXED)


def attributes(feed: NativeFeed) -> Texts:
    """The text of each column that tells the feed's partials apart."""
    columns = PhysicalColumns(key_types=dict.fromkeys(feed.keys, ""))
    texts = from_rows(feed.layout.number, feed, columns, len(feed.signature.columns))
    return {name: text for name, text in texts.items() if name != "feed"}


def relation(feed: NativeFeed) -> Relation:
    return frozenset(attributes(feed).values())


def relations_of(feeds: Sequence[NativeFeed]) -> list[Relation]:
    """What is counted for tables of these feeds: each of them, and all together."""
    own = [relation(feed) for feed in feeds]
    return [*own, frozenset[str]().union(*own)]


def choose_hash_tables(
    feeds: Sequence[NativeFeed],
    bound: PhysicalColumns,
    counts: GroupCounts,
    memory: int,
    prices: TableCosts,
    how: Phantoming = "auto",
) -> HashTables:
    """Phantoms and buckets for these feeds in so many bytes, by the groups that were counted.

    `how` is "auto" for the cheapest, "always" for one phantom that feeds all, "never" for none.
    """
    assert counts.flows is not None
    slots = {feed.layout.number: _slots(feed, bound) for feed in feeds}
    most = len({slot for of in slots.values() for slot in of.values()}) + 1
    keys = {text for feed in feeds for c, text in attributes(feed).items() if bound.key_types.get(c) not in _FIXED}
    keys -= {text for feed in feeds for c, text in attributes(feed).items() if c not in feed.keys}
    dictionaries = memory // 2 if keys else 0
    widths = _Widths(most)
    counted = {r: counts.groups[r] for r in relations_of(feeds)}
    statistics = GroupStatistics(counted, counts.flows, widths=widths.of(counted))
    queries = dict.fromkeys(relation(feed) for feed in feeds)
    chosen = _chosen(queries, statistics, memory - dictionaries, prices.tables, how)
    everything = widths.of(chosen.configuration.relations)
    buckets = chosen.allocated.buckets(replace(statistics, widths=everything))
    groups = estimate(chosen.configuration.relations, counted, counts.rows)
    # Whatever its buckets, each group leaves a table once at least: what a phantom is emptied of throws others out.
    left = {table: groups[table.relation] for table in chosen.configuration.tables}
    answered = sum(number for table, number in left.items() if table.asked) * prices.eviction
    fed = sum(number * len(table.children) for table, number in left.items()) * prices.probe
    costs = _Costs(counts.flows.by_depth[0], prices.row, answered / max(1, counts.rows), fed / max(1, counts.rows))
    return _build(feeds, chosen, buckets, slots, dictionaries, costs)


@dataclass(frozen=True, slots=True)
class _Costs:
    """What `HashTables` says of rows."""

    flow: float
    row: float
    emptying: float
    emptying_phantoms: float


def _chosen(
    queries: Iterable[Relation], statistics: GroupStatistics, memory: float, prices: ProbeCosts, how: Phantoming
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


LATEST_SLOT = Slot(TableOperation.GREATEST, LATEST)


def _build(
    feeds: Sequence[NativeFeed],
    choice: Choice,
    buckets: Mapping[Relation, int],
    slots: Mapping[int, Mapping[str, Slot]],
    dictionaries: int,
    costs: _Costs,
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
        outs.setdefault(relation(feed), []).append(Out(feed.layout.number, columns, {**kept, LATEST: LATEST_SLOT}))

    def table(spec: TableNode) -> CascadeTable:
        children = tuple(map(table, spec.children))
        own = tuple(outs.get(spec.relation, ()))
        held = [slot for out in own for slot in out.slots.values()]
        held += [slot for child in children for slot in child.slots]
        by = tuple(sorted(names[text] for text in spec.relation))
        return CascadeTable(by, tuple(dict.fromkeys(held)), buckets[spec.relation], own, children)

    inputs = {name: text for text, name in (names | read).items()}
    return HashTables(
        feeds=tuple(feeds),
        choice=choice,
        flow=costs.flow,
        row=costs.row,
        inputs=inputs,
        roots=tuple(map(table, choice.configuration.raw)),
        dictionary_bytes=dictionaries,
        emptying=costs.emptying,
        emptying_phantoms=costs.emptying_phantoms,
    )
