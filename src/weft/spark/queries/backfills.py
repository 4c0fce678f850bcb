"""Queries that wait for their past: each has a pool for what comes, until a batch takes in what came before."""

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
from weft.spark.queries.backfill import Replays
from weft.spark.queries.pending import NextPlan


@dataclass(frozen=True, slots=True)
class Pasts:
    """Of the plan that a batch takes up: who waits, and whose past the batch takes in."""

    held: Mapping[str, BackfillRecord] = field(default_factory=dict)
    arrived: Mapping[str, BackfillRecord] = field(default_factory=dict)
    pools: tuple[TreeLayout, ...] = ()
    """Of those who begin to wait."""
    replayed: tuple[BackfilledPartials, ...] = ()

    def readers(self, joined: Iterable[str]) -> dict[str, Reader]:
        """What those who join and wait will see."""
        return {n: Reader(self.held[n].begin, (self.held[n].pool,)) for n in joined if n in self.held}


class Backfills:
    """Who waits, from the batch that took it up to the one that takes in its past.

    Called under the lock of the one that has it; what is read beside the job has threads of its own (see `replay`).
    """

    def __init__(self, replays: Replays, held: Mapping[str, BackfillRecord]) -> None:
        self.held = dict(held)
        self._replays = replays

    @contextmanager
    def unless_it_fails(self) -> Iterator[None]:
        """Who waits changes with a plan that is written down, or not at all: a drain that failed is tried again."""
        before = dict(self.held)
        try:
            yield
        except BaseException:
            self.held = before
            raise

    def arrive(self) -> dict[str, BackfillRecord]:
        """Those whose past is there, and who wait no longer."""
        ready = {name: held for name, held in self.held.items() if self._replays.done(name, held)}
        self.held = {name: held for name, held in self.held.items() if name not in ready}
        return ready

    def arrived_again(
        self, arrived: Mapping[str, BackfillRecord], queries: Mapping[str, ACQ]
    ) -> dict[str, BackfillRecord]:
        """Those of a batch that is repeated who are still there."""
        return {n: held for n, held in arrived.items() if n in queries and self._replays.done(n, held)}

    def pasts(
        self,
        pending: NextPlan,
        bound: PhysicalPlan,
        before: BatchRecord,
        arrived: Mapping[str, BackfillRecord],
        following: int,
    ) -> Pasts:
        """`following` is the first number that a pool may have."""
        queries, groupings = pending.plan.workload.by_name, bound.groupings
        pools = () if before.is_initial else self._hold(pending, bound, before, following)
        named = enumerate(arrived.items(), len(bound.feeds))
        replayed = (self._replays.replayed(n, queries[n], held, feed, groupings) for feed, (n, held) in named)
        return Pasts(dict(self.held), arrived, pools, tuple(replayed))

    def _hold(
        self, pending: NextPlan, bound: PhysicalPlan, before: BatchRecord, following: int
    ) -> tuple[TreeLayout, ...]:
        """Those who join from the source wait: a pool for what is to come, each."""
        pools: list[TreeLayout] = []
        for name in (query.name for query in bound.layout.queries):
            join = pending.joining.get(name)
            if join is not None and join.how == "source":
                folder = self._replays.prepare(name, before.spark_batch)
                held = self.held[name] = BackfillRecord(following + len(pools), join.begin, folder)
                pools.append(self._replays.pool(pending.plan.workload.by_name[name], held.pool, bound.groupings))
        return tuple(pools)

    def begin(self, queries: Mapping[str, ACQ], groupings: Sequence[tuple[str, ...]]) -> None:
        """Read what they wait for, where that is not being done."""
        for name, held in self.held.items():
            self._replays.begin(name, queries[name], held, groupings)

    def forget(self, names: Iterable[str]) -> None:
        for name in names:
            held = self.held.pop(name, None)
            if held is not None:
                self._replays.forget(name, held)

    def taken_in(self, arrived: Mapping[str, BackfillRecord]) -> None:
        """What came from the past is in the state."""
        for name, held in arrived.items():
            self._replays.forget(name, held)
