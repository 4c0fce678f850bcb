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
from weft.engine.partial.hash_tables import FeedOutput, HashTableSpec, Slot, bucket_bytes
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
)
from weft.spark.options import Phantoming
from weft.spark.physical.columns import LATEST, PhysicalColumns
from weft.spark.physical.expressions import Texts, from_rows, guarded_arguments
from weft.spark.physical.plan import HashTableCosts, HashTables, NativeFeed
from weft.spark.physical.statistics import GroupCounts

_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
_FLOATS = frozenset({"float", "double"})
_TIMES = frozenset({"boolean", "date", "timestamp", "timestamp_ntz"})
_NUMBERS = _INTEGERS | _FLOATS
_FIXED = _NUMBERS | _TIMES
_BITS = frozenset({TableOperation.ALL_BITS, TableOperation.ANY_BIT, TableOperation.ODD_BITS})
SUMS = frozenset({TableOperation.SUM})
DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")

LONG_DIGITS = 18
"""Digits of a decimal that 64 bits hold."""


def fits_table(feed: NativeFeed, bound: PhysicalColumns) -> bool:
    """Whether hash tables can hold all components of the feed."""
    types = {e: bound.argument_types[c] for c, e in feed.arguments.items()}
    return all(_holds(component, types) for component in feed.layout.components)


def _holds(component: Component, types: Mapping[str, str]) -> bool:
    slot = component.definition.table
    if slot is None or slot.row is None or slot.boolean:
        return slot is not None
    argument = types[component.arguments[0]]
    if (digits := DECIMAL.fullmatch(argument)) is not None:
        return slot.operation not in _BITS and int(digits[1]) <= LONG_DIGITS
    return argument in (_INTEGERS if slot.operation in _BITS else _NUMBERS if slot.operation in SUMS else _FIXED)


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
    """Phantoms and buckets for these feeds within `memory` bytes, by the groups that were counted.

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
    # However many buckets it has, each group leaves a table at least once; what leaves a phantom evicts other groups.
    left = {table: groups[table.relation] for table in chosen.configuration.tables}
    answered = sum(number for table, number in left.items() if table.is_query) * prices.eviction
    fed = sum(number * len(table.children) for table, number in left.items()) * prices.probe
    costs = HashTableCosts(prices.row, answered / max(1, counts.rows), fed / max(1, counts.rows))
    inputs, roots = _build(feeds, chosen.configuration, buckets, slots)
    return HashTables(
        feeds=tuple(feeds),
        relations={feed.layout.number: relation(feed) for feed in feeds},
        choice=chosen,
        flow=counts.flows.by_depth[0],
        inputs=inputs,
        roots=roots,
        dictionary_bytes=dictionaries,
        costs=costs,
    )


def _chosen(
    queries: Iterable[Relation], statistics: GroupStatistics, memory: float, prices: ProbeCosts, how: Phantoming
) -> Choice:
    relations = tuple(queries)
    if how == "auto":
        return choose(relations, statistics, memory, prices)
    everything: Relation = frozenset().union(*relations)
    parents = {query: everything if how == "always" and query != everything else None for query in relations}
    if how == "always":
        parents.setdefault(everything, None)
    allocated = allocate(Configuration.of(parents, relations), statistics, memory, prices)
    return Choice(allocated, (ChoiceStep(None, allocated.cost),))


@dataclass(frozen=True, slots=True)
class _Widths:
    """Bytes per bucket, as if every table had all slots."""

    slots: int

    def of(self, relations: Iterable[Relation]) -> dict[Relation, float]:
        return {r: float(bucket_bytes(len(r), self.slots)) for r in relations}


def _slots(feed: NativeFeed, bound: PhysicalColumns) -> dict[str, Slot]:
    """By the feed's column; the argument of a slot is the text of an expression here."""
    texts = guarded_arguments(feed)
    types = {e: bound.argument_types[c] for c, e in feed.arguments.items()}
    by_column = {}
    for component, (name,) in zip(feed.layout.components, feed.layout.columns, strict=True):
        slot = component.definition.table
        assert slot is not None, f"a table cannot hold {component.kind}"
        if slot.row is None:
            by_column[name] = Slot(slot.operation, None)
        else:
            real = not slot.boolean and types[component.arguments[0]] in _FLOATS
            by_column[name] = Slot(slot.operation, slot.row.format(*(texts[a] for a in component.arguments)), real)
    return by_column


LATEST_SLOT = Slot(TableOperation.GREATEST, LATEST)


def _build(
    feeds: Sequence[NativeFeed],
    configuration: Configuration,
    buckets: Mapping[Relation, int],
    slots: Mapping[int, Mapping[str, Slot]],
) -> tuple[dict[str, str], tuple[HashTableSpec, ...]]:
    """The expression of each column that the tables read, and the tables."""
    texts = dict.fromkeys(text for feed in feeds for text in attributes(feed).values())
    names = {text: f"x{place}" for place, text in enumerate(texts)}
    arguments = dict.fromkeys(slot.argument for of in slots.values() for slot in of.values() if slot.argument)
    read = {text: f"y{place}" for place, text in enumerate(arguments)}

    def named(slot: Slot) -> Slot:
        return slot if slot.argument is None else replace(slot, argument=read[slot.argument])

    outputs: dict[Relation, list[FeedOutput]] = {}
    for feed in feeds:
        columns = {column: names[text] for column, text in attributes(feed).items()}
        kept = {column: named(slot) for column, slot in slots[feed.layout.number].items()}
        outputs.setdefault(relation(feed), []).append(
            FeedOutput(feed.layout.number, columns, {**kept, LATEST: LATEST_SLOT})
        )

    def table(node: TableNode) -> HashTableSpec:
        children = tuple(map(table, node.children))
        own = tuple(outputs.get(node.relation, ()))
        slots_of_node = [slot for out in own for slot in out.slots.values()]
        slots_of_node += [slot for child in children for slot in child.slots]
        by = tuple(sorted(names[text] for text in node.relation))
        return HashTableSpec(by, tuple(dict.fromkeys(slots_of_node)), buckets[node.relation], own, children)

    inputs = {name: text for text, name in (names | read).items()}
    return inputs, tuple(map(table, configuration.raw))
