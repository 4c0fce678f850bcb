"""Groups counted on some rows of the stream: each expression as a hash a row, in the order of arrival."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from pyspark.sql import DataFrame

from weft.optimizer.phantoms import Flows, TableCounts, measure_flows
from weft.spark.physical.rollup import GroupingCandidates, told_apart_by
from weft.spark.physical.signature import Signature
from weft.spark.physical.statistics import GroupCounts, Hashes, SignatureCounts, count_distinct

SAMPLE = 50_000
"""Rows that groups are counted on: a quarter of a second, and enough to see whether most groupings gather."""

LARGER = 4 * SAMPLE
"""Rows that groups are counted on where fewer do not tell."""

GATHERS = 0.1
"""Partials for a row, below which it does not matter how few they are."""

FALL = 0.02
"""By how much the second half of the rows must bring fewer new groups than the first, for more rows to be asked."""

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
        asked = frozenset(texts)
        if asked not in self._counted:
            self._counted[asked] = count_distinct(self._mixed(asked))
        return self._counted[asked]

    def partials(self, texts: Iterable[str]) -> float:
        """The same for a row."""
        return self.groups(texts) / max(1, self.rows)

    def gathers_on(self, texts: Iterable[str]) -> bool:
        """Whether more rows would show fewer partials for a row, and that matters.

        A hundred thousand groups in a slice have hardly met twice in fifty thousand rows, and ten times each in a
        million. Where every row is a group of its own, or slices are short, the halves bring alike.
        """
        asked = frozenset(texts)
        half = count_distinct(self._mixed(asked)[: self.rows // 2])
        return self.partials(asked) > GATHERS and self.groups(asked) < (2 - FALL) * half

    def flows(self, texts: Iterable[str]) -> Flows:
        """How long rows of one group stay together, from how often they collide in a table of as many buckets."""
        mixed = self._mixed(frozenset(texts))
        buckets = max(1, int(self.groups(texts)))
        places = (mixed >> _HALF) % np.uint64(buckets)
        order = np.argsort(places, kind="stable")
        places, mixed = places[order], mixed[order]
        collisions = int(((places[1:] == places[:-1]) & (mixed[1:] != mixed[:-1])).sum())
        return measure_flows(
            [TableCounts(1, self.groups(texts), buckets, self.rows, collisions), TableCounts(2, 1, 1, 0, 0)]
        )

    def counts(self, candidates: GroupingCandidates) -> GroupCounts:
        """All that is needed to choose among these candidates."""
        groups = {relation: self.groups(relation) for relation in candidates.relations}
        flows = None if candidates.together is None else self.flows(candidates.together)
        return GroupCounts(self.rows, told_apart_by(candidates.feeds), groups, flows)

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
    hashes = [f"xxhash64({', '.join(keys)})" if keys else "0L" for keys in filters]
    groups = [f"{text} AS g{i}" for i, text in enumerate(hashes)]
    words = [f"{text} AS w{place}" for place, text in enumerate(signature.words)]
    found = rows.selectExpr(*groups, *words).limit(SIGNED).toArrow()
    columns = [found.column(name).to_numpy() for name in signature.columns]
    numbers = np.random.default_rng(1).integers(1, 2**63, len(every)).astype(np.uint64)
    passed = {
        text: np.where(signature.bits[text].passed(columns), number, np.uint64(0))
        for text, number in zip(every, numbers, strict=True)
    }
    return {
        keys: SignatureCounts(found.column(f"g{i}").to_numpy().view(np.uint64), {text: passed[text] for text in some})
        for i, (keys, some) in enumerate(filters.items())
    }


def take_sample(timed: DataFrame, relations: Iterable[Iterable[str]]) -> GroupSample:
    """Rows with all that tells the groups of some relations apart: one small Spark job, however many there are, and one
    more where its rows cannot tell."""
    asked = [frozenset(texts) for texts in relations]
    texts = sorted(frozenset[str]().union(*asked))
    sample = _take(timed, texts, SAMPLE)
    if sample.rows == SAMPLE and any(map(sample.gathers_on, asked)):
        return _take(timed, texts, LARGER)
    return sample


def _take(timed: DataFrame, texts: Sequence[str], rows: int) -> GroupSample:
    names = {text: f"x{place}" for place, text in enumerate(texts)}
    hashed = timed.selectExpr(*(f"xxhash64({text}) AS {name}" for text, name in names.items()))
    found = hashed.limit(rows).toArrow()
    columns = {text: found.column(name).to_numpy().view(np.uint64) for text, name in names.items()}
    return GroupSample(columns, found.num_rows)
