"""Which finer groupings rows are aggregated to, so that others are rolled up from those: chosen by counting.

Groups are counted on the first rows that come, and again from time to time. What is chosen changes how partials are
made, never which: it may differ from batch to batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pyspark.sql import DataFrame

from weft.model import WeftError
from weft.optimizer.phantoms.feeding import FeedingGraph
from weft.optimizer.phantoms.relation import Relation
from weft.optimizer.phantoms.rolling import Asked, RollUp, roll_up
from weft.spark.columns import PhysicalColumns
from weft.spark.signature import Signature
from weft.spark.slice import slice_of
from weft.spark.tables import NativeFeed, NativeTable, union_edges

Phantoming = Literal["auto", "always", "never"]

SAMPLE = 50_000
"""Rows that groups are counted on: a quarter of a second, and enough to see whether a grouping gathers."""

FEWEST = 1_000
"""Rows that say nothing yet about how groups repeat: fewer, and the next batches are asked."""

RECOUNT = 64
"""Batches after which groups are counted again."""

GATHERED = 0.5
"""Partials for each row that is spread, from which rows are sent instead: partials are sent twice, by group and by
bucket."""

CANDIDATES = 64
"""Relations counted beside the group-bys: unions of two first, and the union of all."""


@dataclass(frozen=True, slots=True)
class Shared:
    """The tables that rows come to, with their physical columns."""

    tables: tuple[NativeTable, ...]
    columns: PhysicalColumns


def known_phantoming(phantoms: str) -> Phantoming:
    if phantoms not in get_args(Phantoming):
        raise WeftError(f"phantoms cannot be {phantoms!r}; choose one of {', '.join(get_args(Phantoming))}")
    return phantoms  # type: ignore[return-value]


class Phantoms:
    """The choice of a job, kept between batches and plans.

    `always` has one phantom feed whatever it can; `never` none; `auto` asks what they cost.
    """

    def __init__(self, how: Phantoming = "auto") -> None:
        self.how = how
        self.found: RollUp | None = None
        """What was chosen last, and what it saves; None: nothing has been counted yet."""
        self._feeds: tuple[NativeFeed, ...] = ()
        self._wait, self._pause = 0, 1

    def share(self, timed: DataFrame, feeds: tuple[NativeFeed, ...], bound: PhysicalColumns) -> Shared | None:
        """The tables for a batch; None: each feed takes rows."""
        if self.how == "never" or sum(feed.rolls for feed in feeds) < 2:
            return None
        if not _alike(feeds, self._feeds):
            self._feeds, self.found, self._wait, self._pause = feeds, None, 0, 1
        if self.how == "always":
            self.found = _one_for_all(feeds)
        elif self._wait == 0:
            self.found = _choose(timed, feeds) or self.found
            self._pause = RECOUNT if self.found else min(RECOUNT, 2 * self._pause)
            self._wait = self._pause
        self._wait -= 1
        return _tables(self.found, feeds, bound) if self.found and self.found.shares else None

    @property
    def gather(self) -> bool:
        """Whether rows that are aggregated where they are read leave so few partials that those are better sent."""
        return self.found is None or self.found.partials < GATHERED

    def explain(self) -> list[str]:
        """What feeds what, as far as it is known, and what that saves."""
        if self.found is None:
            return []
        said = f"  fed  {self.found.configuration}"
        if self.how == "auto":
            said += f"   a row costs {self.found.cost:.2f} probes, {self.found.unshared:.2f} without phantoms"
        return [said]


def _alike(feeds: tuple[NativeFeed, ...], others: tuple[NativeFeed, ...]) -> bool:
    """Whether the same is counted for both: trees and techniques make no difference."""
    return [_counted([f]) for f in feeds] == [_counted([f]) for f in others]


def _relation(feed: NativeFeed) -> Relation:
    return frozenset(feed.keys.values())


def _one_for_all(feeds: Sequence[NativeFeed]) -> RollUp:
    everything: Relation = frozenset().union(*(_relation(f) for f in feeds if f.rolls))
    asked = tuple(Asked(_relation(f), 0.0, f.rolls) for f in feeds)
    return RollUp(asked, tuple(everything if f.rolls else None for f in feeds), 0.0, 0.0)


def _choose(timed: DataFrame, feeds: Sequence[NativeFeed]) -> RollUp | None:
    """What to do by the groups of these rows; None: they are too few to tell."""
    rolling = [_relation(f) for f in feeds if f.rolls]
    everything: Relation = frozenset().union(*rolling)
    graph = FeedingGraph.of(rolling)
    candidates = dict.fromkeys([*graph.queries, everything, *sorted(graph.phantoms, key=len)[:CANDIDATES]])
    fed = {r: [f for f in feeds if f.rolls and _relation(f) <= r] for r in candidates}
    wanted = {r: _counted(below) for r, below in fed.items() if len(below) > 1}
    own = [_counted([f]) for f in feeds]
    counts, rows = _count(timed, [*own, *wanted.values()])
    if rows < FEWEST:
        return None
    asked = [Asked(_relation(f), counts[texts] / rows, f.rolls) for f, texts in zip(feeds, own, strict=True)]
    return roll_up(asked, {r: counts[texts] / rows for r, texts in wanted.items()})


def _counted(feeds: Sequence[NativeFeed]) -> tuple[str, ...]:
    """What tells partials apart in a table that these feeds are made from."""
    keys = dict.fromkeys(key for feed in feeds for key in feed.keys.values())
    signature = Signature.union(feed.signature for feed in feeds)
    return (slice_of(union_edges([feed.layout.edges for feed in feeds])), *signature.words, *keys)


def _count(timed: DataFrame, wanted: Sequence[tuple[str, ...]]) -> tuple[Mapping[tuple[str, ...], float], int]:
    """How many different partials some rows make, for each of these, and how many rows there were."""
    texts = {text: f"x{i}" for i, text in enumerate(dict.fromkeys(text for texts in wanted for text in texts))}
    columns = timed.limit(SAMPLE).selectExpr(*(f"{text} AS {name}" for text, name in texts.items()))
    different = list(dict.fromkeys(wanted))
    found = columns.selectExpr(
        "count(1) AS rows",
        *(
            f"approx_count_distinct(xxhash64({', '.join(texts[text] for text in each)})) AS n{i}"
            for i, each in enumerate(different)
        ),
    ).collect()[0]
    return {each: float(found[f"n{i}"]) for i, each in enumerate(different)}, int(found["rows"])


def _tables(found: RollUp, feeds: Sequence[NativeFeed], bound: PhysicalColumns) -> Shared:
    columns = PhysicalColumns()
    together: dict[Relation, list[NativeFeed]] = {}
    alone: list[NativeFeed] = []
    for feed, table in zip(feeds, found.tables, strict=True):
        (alone if table is None else together.setdefault(table, [])).append(feed)
    groups = [*together.values(), *([feed] for feed in alone)]
    return Shared(tuple(NativeTable.of(group, bound, columns) for group in groups), columns)
