"""A configuration: which relations have a hash table, and which table feeds which, as a forest.

>>> configuration = parse("ABCD(AB BCD(CD BD BC))")
>>> str(configuration), sorted(map(show, configuration.queries)), sorted(map(show, configuration.phantoms))
('ABCD(AB BCD(BC BD CD))', ['AB', 'BC', 'BD', 'CD'], ['ABCD', 'BCD'])

A relation that feeds nothing is a query. A query that feeds others has a star; the paper has no such queries:

>>> str(parse("AB*(B A) C").without(frozenset("A")))
'AB*(B) C'
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from weft.model import PlanError
from weft.optimizer.phantoms.relation import Relation, order, read_at, refuse, show


class InvalidConfiguration(PlanError):
    """Relations that cannot feed one another as they should."""


@dataclass(frozen=True, slots=True)
class TableNode:
    """The hash table of a relation, and those that it feeds, in the order of their attributes."""

    relation: Relation
    is_query: bool
    """Evicted groups are partials of answers, besides being rows of the tables below."""
    children: tuple[TableNode, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "children", tuple(sorted(self.children, key=lambda t: order(t.relation))))
        for child in self.children:
            if not child.relation < self.relation:
                raise InvalidConfiguration(
                    f"{show(self.relation)} cannot feed {show(child.relation)}: a relation feeds those that have some "
                    "of its attributes, and no others"
                )
        if not self.is_query and not self.children:
            raise InvalidConfiguration(f"{show(self.relation)} is no query and feeds none; leave it out")

    def __str__(self) -> str:
        if not self.children:
            return show(self.relation)
        return f"{show(self.relation)}{'*' if self.is_query else ''}({' '.join(map(str, self.children))})"

    def walk(self) -> Iterator[TableNode]:
        """This table, then what it feeds, depth first."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Configuration:
    """`raw` tables are fed by the stream itself."""

    raw: tuple[TableNode, ...]
    tables: tuple[TableNode, ...] = field(init=False, compare=False, repr=False)
    """All tables; each comes before those that it feeds."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "raw", tuple(sorted(self.raw, key=lambda t: order(t.relation))))
        object.__setattr__(self, "tables", tuple(table for root in self.raw for table in root.walk()))
        if len({table.relation for table in self.tables}) < len(self.tables):
            raise InvalidConfiguration(f"a relation has two tables in {self}; each may have one")

    @classmethod
    def of(cls, parents: Mapping[Relation, Relation | None], queries: Iterable[Relation]) -> Configuration:
        """From each relation to the one that feeds it; None is the stream."""
        query_set = frozenset(queries)
        fed: dict[Relation | None, list[Relation]] = {}
        for relation, parent in parents.items():
            fed.setdefault(parent, []).append(relation)

        def table(relation: Relation) -> TableNode:
            return TableNode(relation, relation in query_set, tuple(map(table, fed.get(relation, ()))))

        return cls(tuple(map(table, fed.get(None, ()))))

    @classmethod
    def flat(cls, queries: Iterable[Relation]) -> Configuration:
        """No phantom: the stream feeds every query."""
        return cls(tuple(TableNode(query, True) for query in sorted(set(queries), key=order)))

    def __str__(self) -> str:
        return " ".join(map(str, self.raw))

    @property
    def relations(self) -> tuple[Relation, ...]:
        return tuple(table.relation for table in self.tables)

    @property
    def queries(self) -> frozenset[Relation]:
        return frozenset(table.relation for table in self.tables if table.is_query)

    @property
    def phantoms(self) -> frozenset[Relation]:
        return frozenset(table.relation for table in self.tables if not table.is_query)

    @property
    def parents(self) -> dict[Relation, Relation | None]:
        parent_of: dict[Relation, Relation | None] = {root.relation: None for root in self.raw}
        parent_of |= {child.relation: table.relation for table in self.tables for child in table.children}
        return {relation: parent_of[relation] for relation in self.relations}

    def without(self, relation: Relation) -> Configuration:
        """Remove a table; the tables that it fed are fed by its parent."""
        parents = self.parents
        above = parents.pop(relation)
        moved = {r: above if parent == relation else parent for r, parent in parents.items()}
        return Configuration.of(moved, self.queries - {relation})


def parse(text: str) -> Configuration:
    tables, place = _read_tables(text, 0)
    if place < len(text):
        raise refuse(text, place, "this bracket closes nothing")
    return Configuration(tables)


def _read_tables(text: str, place: int) -> tuple[tuple[TableNode, ...], int]:
    tables: list[TableNode] = []
    place = _skip(text, place)
    while place < len(text) and text[place] != ")":
        table, place = _read_table(text, place)
        tables.append(table)
        place = _skip(text, place)
    if not tables:
        raise refuse(text, place, "a relation should stand here, such as AB")
    return tuple(tables), place


def _read_table(text: str, place: int) -> tuple[TableNode, int]:
    relation, place = read_at(text, place)
    starred = text[place : place + 1] == "*"
    place = _skip(text, place + starred)
    if text[place : place + 1] != "(":
        return TableNode(relation, True), place
    begin = place
    children, place = _read_tables(text, place + 1)
    if place == len(text):
        raise refuse(text, begin, "this bracket is not closed")
    return TableNode(relation, starred, children), place + 1


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place
