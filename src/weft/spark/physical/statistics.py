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
    """The group of each counted row, in the order of arrival, and which filters it passed."""

    groups: Hashes
    passed: Mapping[str, Hashes]
    """By filter: a number of its own where a row passes, else 0. A signature is all of them, combined by XOR."""

    @property
    def rows(self) -> int:
        return len(self.groups)

    def share(self, filter_: str) -> float:
        """The share of the rows that pass."""
        return float(np.count_nonzero(self.passed[filter_])) / max(1, self.rows)

    def partials(self, filters: Sequence[str], rows: float) -> float:
        """Different pairs of group and signature per row, in a slice of `rows` rows.

        Beyond the counted rows they are extrapolated with their growth from half of these rows to all of them.
        """
        counted_rows = max(1, int(min(rows, self.rows)))
        mixed = self.groups[:counted_rows].copy()
        for text in filters:
            mixed ^= self.passed[text][:counted_rows]
        here = count_distinct(mixed)
        if rows <= counted_rows or counted_rows < 2:
            return here / counted_rows
        half = count_distinct(mixed[: counted_rows // 2])
        return float(here * (rows / counted_rows) ** log2(here / half) / rows)


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """How many groups some relations have, counted on some rows."""

    rows: int
    feeds: tuple[tuple[str, ...], ...]
    """For each feed that was counted, the expressions that identify a partial."""
    groups: Mapping[frozenset[str], float]
    """By the expressions whose distinct values are the groups."""
    flows: Flows | None = None
    """How long rows of a group stay together; None: hash tables were no choice."""

    def partials(self, texts: Iterable[str]) -> float:
        """Groups per row."""
        return self.groups[frozenset(texts)] / max(1, self.rows)


@dataclass(frozen=True, slots=True)
class StreamStatistics:
    """What plans are made from: rows per second of event time, groups and signatures.

    >>> measured, assumed = StreamStatistics(Fraction(500), Stream(groups=1000.0)), StreamStatistics(Fraction(490))
    >>> list(measured.differences(assumed, Fraction(1, 10)))
    ['1,000 groups in a slice, not 1']
    """

    rate: Fraction
    stream: Stream = field(default_factory=Stream)
    signatures: Mapping[tuple[str, ...], SignatureCounts] = field(default_factory=dict, compare=False)
    """Which filters rows pass together, by the keys of a grouping."""
    signature_samples: int = 0
    """How often signatures were counted."""
    groups: GroupCounts | None = field(default=None, compare=False)
    """None: too few rows have arrived."""

    def signatures_of(self, filters: Iterable[str], keys: tuple[str, ...]) -> SignatureCounts | None:
        """The counted signatures of these filters, if all of them were counted."""
        counted = self.signatures.get(keys)
        return counted if counted is not None and set(filters) <= counted.passed.keys() else None

    def differences(self, assumed: StreamStatistics, tolerance: Fraction) -> Iterator[str]:
        """Where these statistics differ from the assumed ones by more than the tolerance, in words."""
        here, there = self.stream, assumed.stream
        for measured, expected, what in (
            (float(self.rate), float(assumed.rate), "rows per second"),
            (here.groups, there.groups, "groups in a slice"),
            (here.selectivity, there.selectivity, "of the rows pass a filter"),
            (here.batch_seconds, there.batch_seconds, "seconds of stream in a batch"),
        ):
            if abs(measured - expected) > tolerance * expected:
                yield f"{_number(measured)} {what}, not {_number(expected)}"


@dataclass(frozen=True, slots=True)
class Feeding:
    """Which groupings feed others, and how many rows of a group follow each other, where that influenced the choice.

    >>> Feeding("AB(A B)", 31.4).difference(Feeding("A B", 1.0))
    'groups were counted again, in flows of 31.4 rows, not 1.0: AB(A B), not A B'
    """

    by: str | None = None
    """None: nothing was counted."""
    flow: float | None = None

    def difference(self, before: Feeding) -> str | None:
        """What changed after groups were counted again, in words; None: nothing."""
        if self.by is None or before.by is None or self.by == before.by:
            return None
        return f"groups were counted again{_flows(self.flow, before.flow)}: {self.by}, not {before.by}"


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
