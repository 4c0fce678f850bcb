"""Groups counted on some rows of the stream: one hash per row and expression, in the order of arrival."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from pyspark.sql import DataFrame

from weft.optimizer.phantoms import Flows, TableCounts, measure_flows
from weft.spark.physical.guards import where
from weft.spark.physical.rollup import GroupingCandidates, partial_keys
from weft.spark.physical.signature import Signature
from weft.spark.physical.statistics import GroupCounts, Hashes, SignatureCounts, count_distinct
from weft.sql.total import can_fail

SAMPLE = 50_000
"""Rows that groups are counted on: it takes a quarter of a second, and shows for most groupings how few partials they
need."""

LARGER = 4 * SAMPLE
"""Rows that groups are counted on if the smaller sample is not enough."""

GATHERS = 0.1
"""Partials per row below which the exact number does not matter."""

FALL = 0.02
"""The larger sample is taken if the second half of the rows brings fewer new groups than the first by this share."""

SIGNED = 20_000
"""Rows that signatures are counted on."""

_MIX = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@dataclass(slots=True)
class GroupSample:
    """Rows in the order of arrival; each relation is counted once."""

    columns: Mapping[str, Hashes]
    """By the text of each expression."""
    rows: int
    _counted: dict[frozenset[str], float] = field(default_factory=dict, compare=False, repr=False)

    def groups(self, texts: Iterable[str]) -> float:
        """How many different values some expressions have together."""
        relation = frozenset(texts)
        if relation not in self._counted:
            self._counted[relation] = count_distinct(self._mixed(relation))
        return self._counted[relation]

    def partials(self, texts: Iterable[str]) -> float:
        """The same per row."""
        return self.groups(texts) / max(1, self.rows)

    def needs_more_rows(self, texts: Iterable[str]) -> bool:
        """Whether more rows would show fewer partials per row, and that matters.

        Of a hundred thousand groups in a slice, few occur twice in fifty thousand rows, but each occurs ten times in a
        million. If every row is a group of its own, or slices are short, both halves bring the same number of groups.
        """
        relation = frozenset(texts)
        half = count_distinct(self._mixed(relation)[: self.rows // 2])
        return self.partials(relation) > GATHERS and self.groups(relation) < (2 - FALL) * half

    def flows(self, texts: Iterable[str]) -> Flows:
        """How many rows of a group follow each other, measured by collisions in a table with one bucket per group."""
        mixed = self._mixed(frozenset(texts))
        buckets = max(1, int(self.groups(texts)))
        bucket_of = (mixed >> _HALF) % np.uint64(buckets)
        order = np.argsort(bucket_of, kind="stable")
        bucket_of, mixed = bucket_of[order], mixed[order]
        collisions = int(((bucket_of[1:] == bucket_of[:-1]) & (mixed[1:] != mixed[:-1])).sum())
        return measure_flows(
            [TableCounts(1, self.groups(texts), buckets, self.rows, collisions), TableCounts(2, 1, 1, 0, 0)]
        )

    def counts(self, candidates: GroupingCandidates) -> GroupCounts:
        """The counts that the choice among these candidates needs."""
        groups = {relation: self.groups(relation) for relation in candidates.relations}
        flows = None if candidates.together is None else self.flows(candidates.together)
        return GroupCounts(self.rows, partial_keys(candidates.feeds), groups, flows)

    def _mixed(self, texts: frozenset[str]) -> Hashes:
        mixed = np.zeros(self.rows, np.uint64)
        for text in sorted(texts):
            mixed = (mixed ^ self.columns[text]) * _MIX
            mixed ^= mixed >> _HALF
        return mixed


def take_signatures(
    rows: DataFrame, filters: Mapping[tuple[str, ...], Sequence[str]]
) -> dict[tuple[str, ...], SignatureCounts]:
    """For the filters of each grouping, by its keys: one small Spark job, however many there are."""
    every = sorted({text for some in filters.values() for text in some})
    signature = Signature(tuple(every), all_rows=True)
    with_words = rows.selectExpr("*", *(f"{text} AS {name}" for name, text in zip(signature.names, signature.words)))
    hashes = [_guarded_hash(keys, signature.passes_some(some)) for keys, some in filters.items()]
    groups = [f"{text} AS g{i}" for i, text in enumerate(hashes)]
    words = [f"{name} AS w{place}" for place, name in enumerate(signature.names)]
    table = with_words.selectExpr(*groups, *words).limit(SIGNED).toArrow()
    columns = [table.column(name).to_numpy() for name in signature.columns]
    numbers = np.random.default_rng(1).integers(1, 2**63, len(every)).astype(np.uint64)
    passed = {
        text: np.where(signature.bits[text].passed(columns), number, np.uint64(0))
        for text, number in zip(every, numbers, strict=True)
    }
    return {
        keys: SignatureCounts(table.column(f"g{i}").to_numpy().view(np.uint64), {text: passed[text] for text in some})
        for i, (keys, some) in enumerate(filters.items())
    }


def _guarded_hash(keys: Sequence[str], passes: str | None) -> str:
    """One number per group; rows that no query of the grouping takes are one group, if their keys may not exist."""
    if not keys:
        return "0L"
    hashed = f"xxhash64({', '.join(keys)})"
    return f"coalesce({where(passes, hashed)}, 0L)" if any(map(can_fail, keys)) else hashed


def take_sample(timed: DataFrame, relations: Iterable[Iterable[str]]) -> GroupSample:
    """A sample to count the groups of some relations on: one small Spark job, however many relations there are, and a
    second one if the first sample is too small."""
    expressions = [frozenset(texts) for texts in relations]
    texts = sorted(frozenset[str]().union(*expressions))
    sample = _take(timed, texts, SAMPLE)
    if sample.rows == SAMPLE and any(map(sample.needs_more_rows, expressions)):
        return _take(timed, texts, LARGER)
    return sample


def _take(timed: DataFrame, texts: Sequence[str], rows: int) -> GroupSample:
    names = {text: f"x{place}" for place, text in enumerate(texts)}
    hashed = timed.selectExpr(*(f"xxhash64({text}) AS {name}" for text, name in names.items()))
    table = hashed.limit(rows).toArrow()
    columns = {text: table.column(name).to_numpy().view(np.uint64) for text, name in names.items()}
    return GroupSample(columns, table.num_rows)
