"""The ways to read an answer from combined components, one type each; `weft.engine` implements them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AnswerLowering:
    """Base of all ways to read an answer."""

    @property
    def code(self) -> tuple[Any, ...]:
        """Functions that buckets run: executors may not be able to import them."""
        return ()


@dataclass(frozen=True, slots=True)
class Value(AnswerLowering):
    """The component is the answer."""


@dataclass(frozen=True, slots=True)
class ChosenValue(AnswerLowering):
    """The value of the chosen partial: the second column."""


@dataclass(frozen=True, slots=True)
class Mean(AnswerLowering):
    """The first component divided by the second."""


@dataclass(frozen=True, slots=True)
class Formula(AnswerLowering):
    """A function of the components' columns, as numpy arrays of doubles; returns answers and a mask of NULLs."""

    function: Callable[..., tuple[Any, Any]]

    @property
    def code(self) -> tuple[Any, ...]:
        return (self.function,)


@dataclass(frozen=True, slots=True)
class NanFormula(AnswerLowering):
    """A function of the components' columns, as numpy arrays of doubles; an answer of NaN is NULL."""

    function: Callable[..., Any]

    @property
    def code(self) -> tuple[Any, ...]:
        return (self.function,)


@dataclass(frozen=True, slots=True)
class FromValues(AnswerLowering):
    """Base of the ways that read the values of each sliding window."""


@dataclass(frozen=True, slots=True)
class Quantiles(FromValues):
    """The values at given fractions of the rows, in the order of the values."""

    interpolated: bool
    """Whether to interpolate between two neighbouring values; otherwise the answer is one of the values."""
    descending: bool = False
    """Whether fractions count from the greatest value."""


@dataclass(frozen=True, slots=True)
class DistinctCount(FromValues):
    """The number of distinct values."""


@dataclass(frozen=True, slots=True)
class DistinctValues(FromValues):
    """A list of the distinct values."""


@dataclass(frozen=True, slots=True)
class Mode(FromValues):
    """The most frequent value."""


@dataclass(frozen=True, slots=True)
class MostFrequent(FromValues):
    """The most frequent values with their counts."""


@dataclass(frozen=True, slots=True)
class Histogram(FromValues):
    """Bins of neighbouring values: the mean and the number of each."""


@dataclass(frozen=True, slots=True)
class GreatestSums(FromValues):
    """The values with the greatest sums of weights, and those sums."""
