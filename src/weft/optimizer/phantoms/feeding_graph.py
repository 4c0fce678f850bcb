"""The relation feeding graph: queries, phantoms that could feed at least two of them, and which can feed which.

>>> from weft.optimizer.phantoms.relation import read
>>> graph = FeedingGraph.of(map(read, ("AB", "BC", "BD", "CD")))
>>> [show(r) for r in graph.phantoms], [show(r) for r in graph.feeds(read("ABCD"))]
(['ABC', 'ABCD', 'ABD', 'BCD'], ['ABC', 'ABD', 'BCD'])
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from weft.model import PlanError
from weft.optimizer.phantoms.relation import Relation, order, show

CANDIDATE_LIMIT = 1000
"""Most phantoms to consider: 8 attributes have 255 unions, 30 different group-bys may have a billion."""


class NoQueries(PlanError):
    """There is nothing to feed."""


@dataclass(frozen=True, slots=True)
class FeedingGraph:
    queries: tuple[Relation, ...]
    phantoms: tuple[Relation, ...]

    @classmethod
    def of(cls, queries: Iterable[Relation]) -> FeedingGraph:
        """A phantom is the union of the relations that it feeds: other attributes would only add groups."""
        distinct = sorted(set(queries), key=order)
        if not distinct:
            raise NoQueries("there is no group-by to choose phantoms for; give at least one")
        return cls(tuple(distinct), tuple(sorted(_unions(distinct), key=order)))

    @property
    def relations(self) -> tuple[Relation, ...]:
        return (*self.queries, *self.phantoms)

    def feeds(self, relation: Relation) -> tuple[Relation, ...]:
        """The relations that it feeds directly; it could also feed those below them."""
        below = [other for other in self.relations if other < relation]
        direct = [other for other in below if not any(other < between for between in below)]
        return tuple(sorted(direct, key=order))

    def __str__(self) -> str:
        """An edge list, the finest relations first."""
        tops = sorted(self.relations, key=lambda r: (-len(r), order(r)))
        return "\n".join(f"{show(r)} -> {' '.join(map(show, self.feeds(r)))}" for r in tops if self.feeds(r))


def _unions(queries: list[Relation]) -> set[Relation]:
    """Unions of two queries, then of three, and so on up to the limit; the union of all queries is always included."""
    everything = frozenset[str]().union(*queries)
    unions: set[Relation] = {everything}
    last: list[Relation] = list(queries)
    while last and len(unions) < CANDIDATE_LIMIT:
        wider = {one | other for one in last for other in queries} - unions
        last = sorted(wider - set(queries), key=lambda r: (len(r), order(r)))[: CANDIDATE_LIMIT - len(unions)]
        unions.update(last)
    return unions - set(queries)
