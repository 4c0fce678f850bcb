"""Queries with a backfill: each has a pool for new rows until a batch takes in the rows from before it joined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from weft.engine import TreeLayout
from weft.engine.plan_transition import Reader
from weft.model import ACQ
from weft.spark.checkpoint.batch_log import BatchRecord
from weft.spark.checkpoint.plan_log import BackfillRecord
from weft.spark.physical.backfilled import BackfilledPartials
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.queries.backfill import BackfillReader
from weft.spark.queries.change import Join


@dataclass(frozen=True, slots=True)
class BackfillUpdate:
    """What the first batch of a plan does about backfills: which still run, and which it takes in."""

    pending: Mapping[str, BackfillRecord] = field(default_factory=dict)
    completed: Mapping[str, BackfillRecord] = field(default_factory=dict)
    pools: tuple[TreeLayout, ...] = ()
    """Of queries whose backfill starts."""
    partials: tuple[BackfilledPartials, ...] = ()

    def readers(self, joined: Iterable[str]) -> dict[str, Reader]:
        """What queries that join with a backfill will see."""
        return {n: Reader(self.pending[n].begin, (self.pending[n].pool,)) for n in joined if n in self.pending}


class Backfills:
    """Queries with a backfill, from the batch that they join with to the batch that takes the backfill in.

    Its owner calls it under a lock; the backfills run in their own threads (see `backfill`).
    """

    def __init__(self, reader: BackfillReader, pending: Mapping[str, BackfillRecord]) -> None:
        self.pending = dict(pending)
        self._reader = reader

    @contextmanager
    def restored_on_failure(self) -> Iterator[None]:
        """Backfills change with a plan that is written, or not at all: a failed drain may be tried again."""
        before = dict(self.pending)
        try:
            yield
        except BaseException:
            self.pending = before
            raise

    def take_completed(self) -> dict[str, BackfillRecord]:
        """Those that are complete, which are no longer pending."""
        ready = {name: backfill for name, backfill in self.pending.items() if self._reader.is_complete(name, backfill)}
        self.pending = {name: backfill for name, backfill in self.pending.items() if name not in ready}
        return ready

    def completed_again(
        self, completed: Mapping[str, BackfillRecord], queries: Mapping[str, ACQ]
    ) -> dict[str, BackfillRecord]:
        """Those of a repeated batch whose queries still exist."""
        return {
            n: backfill for n, backfill in completed.items() if n in queries and self._reader.is_complete(n, backfill)
        }

    def update(
        self,
        queries: Mapping[str, ACQ],
        joining: Mapping[str, Join],
        bound: PhysicalPlan,
        before: BatchRecord,
        completed: Mapping[str, BackfillRecord],
        following: int,
    ) -> BackfillUpdate:
        """`following` is the first number that a pool may have."""
        groupings = bound.groupings
        pools = () if before.is_initial else self._register(queries, joining, bound, before, following)
        named = enumerate(completed.items(), len(bound.feeds))
        partials = (self._reader.partials(n, queries[n], backfill, feed, groupings) for feed, (n, backfill) in named)
        return BackfillUpdate(dict(self.pending), completed, pools, tuple(partials))

    def _register(
        self,
        queries: Mapping[str, ACQ],
        joining: Mapping[str, Join],
        bound: PhysicalPlan,
        before: BatchRecord,
        following: int,
    ) -> tuple[TreeLayout, ...]:
        """Each query that joins from the source gets a pool for new rows."""
        pools: list[TreeLayout] = []
        for name in (query.name for query in bound.layout.queries):
            join = joining.get(name)
            if join is not None and join.how == "source":
                folder = self._reader.prepare(name, before.spark_batch)
                backfill = self.pending[name] = BackfillRecord(following + len(pools), join.begin, folder)
                pools.append(self._reader.pool(queries[name], backfill.pool, bound.groupings))
        return tuple(pools)

    def begin(self, queries: Mapping[str, ACQ], groupings: Sequence[tuple[str, ...]]) -> None:
        """Start those that do not run."""
        for name, backfill in self.pending.items():
            self._reader.begin(name, queries[name], backfill, groupings)

    def forget(self, names: Iterable[str]) -> None:
        for name in names:
            backfill = self.pending.pop(name, None)
            if backfill is not None:
                self._reader.forget(name, backfill)

    def remove(self, completed: Mapping[str, BackfillRecord]) -> None:
        """They are in the state."""
        for name, backfill in completed.items():
            self._reader.forget(name, backfill)
