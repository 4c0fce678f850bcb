"""Statistics of a stream, as frozen values: what plans are made from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import log2

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from weft.optimizer import Stream
from weft.optimizer.phantoms import Flows

Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class SignatureCounts:
    """Which of some filters each of some rows passed, in the order of arrival, and the group that it was of."""

    groups: Hashes
    passed: Mapping[str, Hashes]
    """By filter: a number of its own where a row passes, else 0. A signature is all of them, combined by XOR."""

    @property
    def rows(self) -> int:
        return len(self.groups)

    def share(self, filter_: str) -> float:
        """Of the rows, how many pass."""
        return float(np.count_nonzero(self.passed[filter_])) / max(1, self.rows)

    def partials(self, filters: Sequence[str], rows: float) -> float:
        """Different groups and signatures for a row, where a slice has so many rows.

        Beyond the rows that were seen they go on to grow as they did from half of these to all.
        """
        seen = max(1, int(min(rows, self.rows)))
        mixed = self.groups[:seen].copy()
        for text in filters:
            mixed ^= self.passed[text][:seen]
        here = count_distinct(mixed)
        if rows <= seen or seen < 2:
            return here / seen
        half = count_distinct(mixed[: seen // 2])
        return float(here * (rows / seen) ** log2(here / half) / rows)


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """How many groups some relations have, counted on some rows."""

    rows: int
    feeds: tuple[tuple[str, ...], ...]
    """What tells partials apart in each of the feeds that they were counted for."""
    groups: Mapping[frozenset[str], float]
    """By the expressions that tell groups apart."""
    flows: Flows | None = None
    """How long rows of a group stay together; None: hash tables were no choice."""

    def partials(self, texts: Iterable[str]) -> float:
        """Groups per row."""
        return self.groups[frozenset(texts)] / max(1, self.rows)


@dataclass(frozen=True, slots=True)
class StreamStatistics:
    """What plans are made from: rows per second of event time, groups and signatures.

    >>> seen, counted = StreamStatistics(Fraction(500), Stream(groups=1000.0)), StreamStatistics(Fraction(490))
    >>> list(seen.differences(counted, Fraction(1, 10)))
    ['1,000 groups in a slice, not 1']
    """

    rate: Fraction
    stream: Stream = field(default_factory=Stream)
    signatures: Mapping[tuple[str, ...], SignatureCounts] = field(default_factory=dict, compare=False)
    """Which filters rows pass together, by the keys of a grouping."""
    signature_samples: int = 0
    """How often signatures were counted."""
    groups: GroupCounts | None = field(default=None, compare=False)
    """None: too few rows have come to tell."""

    def signatures_of(self, filters: Iterable[str], keys: tuple[str, ...]) -> SignatureCounts | None:
        """What was counted of these filters, where all of them were."""
        counted = self.signatures.get(keys)
        return counted if counted is not None and set(filters) <= counted.passed.keys() else None

    def differences(self, counted: StreamStatistics, tolerance: Fraction) -> Iterator[str]:
        """What is further from what was counted on than the tolerance allows, in words."""
        here, there = self.stream, counted.stream
        for found, expected, what in (
            (float(self.rate), float(counted.rate), "rows a second"),
            (here.groups, there.groups, "groups in a slice"),
            (here.selectivity, there.selectivity, "of the rows pass a filter"),
            (here.batch_seconds, there.batch_seconds, "seconds of stream in a batch"),
        ):
            if abs(found - expected) > tolerance * expected:
                yield f"{_number(found)} {what}, not {_number(expected)}"


@dataclass(frozen=True, slots=True)
class Feeding:
    """Which groupings feed others, and how many rows of a group follow each other, where that influenced the choice.

    >>> Feeding("AB(A B)", 31.4).difference(Feeding("A B", 1.0))
    'groups were counted anew, in flows of 31.4 rows, not 1.0: AB(A B), not A B'
    """

    by: str | None = None
    """None: nothing was counted."""
    flow: float | None = None

    def difference(self, before: Feeding) -> str | None:
        """What groups that were counted anew have changed, in words; None: nothing."""
        if self.by is None or before.by is None or self.by == before.by:
            return None
        return f"groups were counted anew{_flows(self.flow, before.flow)}: {self.by}, not {before.by}"


def _flows(flow: float | None, before: float | None) -> str:
    """
    >>> _flows(31.4, 1.0), _flows(31.4, None), _flows(None, 1.0)
    (', in flows of 31.4 rows, not 1.0', ', in flows of 31.4 rows', '')
    """
    if flow is None:
        return ""
    return f", in flows of {flow:.1f} rows{'' if before is None else f', not {before:.1f}'}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"


def count_distinct(hashes: Hashes) -> float:
    return float(pc.count_distinct(pa.array(hashes)).as_py())
