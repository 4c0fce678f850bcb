"""EPES: every configuration, each with the best division of the memory. A reference for a few queries.

A phantom is the union of the tables that it feeds, so a configuration is a way to bracket the queries: there are 2, 8,
52, 472, 5,504 for 2 to 6 queries that do not contain one another.

>>> from weft.optimizer.phantoms.relation import read
>>> [str(configuration) for configuration in configurations(map(read, ("A", "B", "AB")))]
['A AB B', 'A AB*(B)', 'AB*(A B)', 'AB*(A) B']
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from weft.calibration.table_costs import ProbeCosts
from weft.model import PlanError
from weft.optimizer.phantoms.allocation import Allocated, Allocation, priced
from weft.optimizer.phantoms.base import Choice, ChoiceStep
from weft.optimizer.phantoms.configuration import Configuration, TableNode
from weft.optimizer.phantoms.configuration_arrays import Forests
from weft.optimizer.phantoms.exhaustive_space import exhaustive_space
from weft.optimizer.phantoms.relation import Relation, order
from weft.optimizer.phantoms.statistics import GroupStatistics

EXHAUSTIVE_LIMIT = 6
"""Group-bys: 6 have 5,504 configurations and take a minute, 7 have 78,416."""


class TooManyGroupings(PlanError):
    """More group-bys than all configurations can be tried for."""


def exhaustive(
    queries: Iterable[Relation],
    statistics: GroupStatistics,
    memory: float,
    prices: ProbeCosts,
    allocation: Allocation = exhaustive_space,
) -> Choice:
    distinct = sorted(set(queries), key=order)
    if len(distinct) > EXHAUSTIVE_LIMIT:
        raise TooManyGroupings(
            f"{len(distinct)} group-bys have too many configurations to try all; "
            f"give {EXHAUSTIVE_LIMIT} at most or use gc"
        )
    allocations = [_allocated(c, statistics, memory, prices, allocation) for c in configurations(distinct)]
    alone = next(a for a in allocations if not any(table.children for table in a.configuration.tables))
    best = min(allocations, key=lambda allocated: allocated.cost)
    return Choice(best, (ChoiceStep(None, alone.cost),))


def _allocated(
    configuration: Configuration, statistics: GroupStatistics, memory: float, prices: ProbeCosts, allocation: Allocation
) -> Allocated:
    forests = Forests.one(configuration, statistics)
    return priced(configuration, forests, allocation(forests, memory, prices), prices)


def configurations(queries: Iterable[Relation]) -> list[Configuration]:
    """All configurations in which every phantom is the union of at least two tables that it feeds."""
    distinct = tuple(sorted(set(queries), key=order))
    by_notation = {str(c): c for c in (Configuration(raw) for raw in _forests(distinct, None) if _once(raw))}
    return [by_notation[text] for text in sorted(by_notation)]


def _once(raw: tuple[TableNode, ...]) -> bool:
    """Whether each relation has one table: the same union may occur in two places."""
    relations = [table.relation for root in raw for table in root.walk()]
    return len(set(relations)) == len(relations)


def _forests(queries: tuple[Relation, ...], above: Relation | None) -> Iterator[tuple[TableNode, ...]]:
    """Ways to feed these queries from the table `above`, or from the stream."""
    for parts in _partitions(queries):
        if any(_union(part) == above for part in parts):
            continue
        yield from product(*(list(_trees(part)) for part in parts))


def _trees(queries: tuple[Relation, ...]) -> Iterator[TableNode]:
    """Ways to feed these queries from a table of their union."""
    top = _union(queries)
    rest = tuple(query for query in queries if query != top)
    if len(rest) < len(queries):
        for children in _forests(rest, top) if rest else ((),):
            yield TableNode(top, True, children)
        return
    for children in _forests(rest, top):
        if len(children) > 1:
            yield TableNode(top, False, children)


def _union(queries: tuple[Relation, ...]) -> Relation:
    return frozenset[str]().union(*queries)


def _partitions(items: tuple[Relation, ...]) -> Iterator[tuple[tuple[Relation, ...], ...]]:
    if not items:
        yield ()
        return
    first, rest = items[0], items[1:]
    for parts in _partitions(rest):
        yield ((first,), *parts)
        for place in range(len(parts)):
            yield (*parts[:place], (first, *parts[place]), *parts[place + 1 :])
