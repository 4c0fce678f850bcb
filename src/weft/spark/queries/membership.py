"""Which queries joined and left a job while it ran, and how long each stays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from weft.engine import Layout
from weft.model import ACQ, Ttl
from weft.spark.checkpoint.plan_log import PlanRecord
from weft.spark.queries.change import QueryChange


@dataclass(frozen=True, slots=True)
class Membership:
    """What a restart must know about them beside their texts."""

    joined: tuple[str, ...] = ()
    """Queries that joined while the job ran."""
    dropped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The texts of queries that left, by name."""
    ttls: Mapping[str, Ttl] = field(default_factory=dict)
    """Of queries with FOR or UNTIL."""
    changes: int = 0
    """Changes since the checkpoint began."""

    @classmethod
    def of(cls, record: PlanRecord) -> Membership:
        return cls(record.joined, record.dropped, record.ttls, record.changes_applied)

    def after(self, change: QueryChange) -> Membership:
        """After one more change."""
        staying = {name: ttl for name, ttl in self.ttls.items() if name not in change.leaving}
        return Membership(
            joined_after(self.joined, change),
            with_dropped(self.dropped, change.leaving),
            {**staying, **ttls_of(change.joining)},
            self.changes + 1,
        )

    def begun(self, at: int | None) -> Membership:
        """A TTL begins with the first batch whose time is known."""
        return replace(self, ttls={name: ttl.begun(at) for name, ttl in self.ttls.items()})

    def ended(self, watermark: int | None) -> list[str]:
        """Queries that have answered their last window."""
        ends = {name: ttl.until for name, ttl in self.ttls.items()}
        return [n for n, end in ends.items() if watermark is not None and end is not None and end <= watermark]


def joined_after(joined: Iterable[str], change: QueryChange) -> tuple[str, ...]:
    return (*(name for name in joined if name not in change.leaving), *(q.name for q in change.joining))


def with_dropped(dropped: Mapping[str, tuple[str, ...]], leaving: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Each text once, even if the query joined and left several times."""
    more = {name: tuple(dict.fromkeys((*dropped.get(name, ()), text))) for name, text in leaving.items()}
    return {**dropped, **more}


def ttls_of(queries: Iterable[ACQ]) -> dict[str, Ttl]:
    return {q.name: q.ttl for q in queries if q.ttl is not None}


def with_ttls(layout: Layout, ttls: Mapping[str, Ttl]) -> Layout:
    """Queries answer no window that ends after their TTL."""
    if not ttls:
        return layout
    ends = {name: ttl.until for name, ttl in ttls.items()}
    return layout.with_trees(
        lambda tree: replace(tree, queries=tuple(replace(q, until=ends.get(q.name)) for q in tree.queries))
    )
