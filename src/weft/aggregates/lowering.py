"""How an answer is read from combined components: a type for each way, which `weft.engine` implements."""

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
    """The value that came with the chosen ordering: the second column."""


@dataclass(frozen=True, slots=True)
class Mean(AnswerLowering):
    """The first component divided by the second."""


@dataclass(frozen=True, slots=True)
class Formula(AnswerLowering):
    """A function of the components' columns, as numpy arrays of doubles: answers, and where they are NULL."""

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
    """Base of what is read from the values of each window as it slides."""


@dataclass(frozen=True, slots=True)
class Quantiles(FromValues):
    """The values at given fractions of the rows, in ascending order."""

    interpolated: bool
    """Between two neighbouring values in proportion; otherwise one of the values."""


@dataclass(frozen=True, slots=True)
class DistinctCount(FromValues):
    """The number of different values."""


@dataclass(frozen=True, slots=True)
class DistinctValues(FromValues):
    """A list of the different values."""


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
