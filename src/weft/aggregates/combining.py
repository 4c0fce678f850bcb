"""The ways to combine the partials of slices, one type each; `weft.engine.combine` has the loops.

Only facts: planning needs neither numpy nor a compiler. A new kind names one of these; a new way to combine is a new
type here and a class in `weft.engine.combine`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

Row = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Combining:
    """Base of all ways to combine."""

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators of `weft.aggregates.operators` that it may use; the column's type decides which one."""
        return ()

    @property
    def code(self) -> tuple[Any, ...]:
        """Functions and classes that buckets run: executors may not be able to import them."""
        return ()


@dataclass(frozen=True, slots=True)
class NumberSum(Combining):
    """Numbers and durations that add up; NULL where no row has a value."""

    @property
    def operators(self) -> tuple[str, ...]:
        return ("int_sum", "float_sum")


@dataclass(frozen=True, slots=True)
class SumOrNull(Combining):
    """Decimals that add up, and whether a sum has left the range of its type: it is NULL then, and stays NULL."""


@dataclass(frozen=True, slots=True)
class IntegerSum(Combining):
    """Integers that add up, never NULL."""

    @property
    def operators(self) -> tuple[str, ...]:
        return ("int_sum",)


@dataclass(frozen=True, slots=True)
class RowCount(IntegerSum):
    """The number of rows: every row counts one, whatever it holds."""


@dataclass(frozen=True, slots=True)
class Extreme(Combining):
    """The greatest or the least value. Numbers are compared by value, texts by their rank."""

    greatest: bool

    @property
    def operators(self) -> tuple[str, ...]:
        return ("max", *ChosenBy(self.greatest).operators)


@dataclass(frozen=True, slots=True)
class ChosenBy(Combining):
    """The partial with the greatest or the least first column, with its other columns."""

    greatest: bool

    @property
    def operators(self) -> tuple[str, ...]:
        return ("argmax_last" if self.greatest else "argmax_first",)


@dataclass(frozen=True, slots=True)
class Bitwise(Combining):
    """Integers combined bit by bit with this operator; `identity` is its neutral element."""

    operator: str
    identity: int

    @property
    def operators(self) -> tuple[str, ...]:
        return (self.operator,)


@dataclass(frozen=True, slots=True)
class Vector(Combining):
    """Several doubles that an operator combines together, never NULL."""

    operator: str
    from_spark: Callable[..., list[Any]]
    """The columns of a partial as numpy arrays, from the columns of `lift` without NULLs."""

    @property
    def operators(self) -> tuple[str, ...]:
        return (self.operator,)

    @property
    def code(self) -> tuple[Any, ...]:
        return (self.from_spark,)


class UserAggregate(Protocol):
    """A partial is a row of doubles. `combine` is associative and compiled by numba: numbers and tuples only."""

    lift: tuple[str, ...]
    """Native Spark aggregates over the rows of a slice, one per column; `{0}`, `{1}` stand for the arguments."""
    identity: Row
    """The value of a column where Spark's aggregate is NULL; `combine` with it changes nothing."""

    @staticmethod
    def combine(older: Row, newer: Row) -> Row: ...

    @staticmethod
    def lower(*columns: Any) -> Any:
        """The answers, one DOUBLE each, from the columns of combined partials as numpy arrays; NaN becomes NULL."""


@dataclass(frozen=True, slots=True)
class Compiled(Combining):
    """Several doubles, combined by a function that is compiled on first use."""

    definition: type[UserAggregate]

    @property
    def code(self) -> tuple[Any, ...]:
        return (self.definition,)


@dataclass(frozen=True, slots=True)
class ValueList(Combining):
    """Values and a weight for each, ascending: partials without a fixed size. Weights of equal values add up."""

    source: ValueSource
    points: Callable[[int], int] | None = None
    """The most values in a partial, by the component's setting; None: one per distinct value of the rows."""

    @property
    def columns(self) -> int:
        return self.source.columns


@dataclass(frozen=True, slots=True)
class ValueSource:
    """The form in which Spark sends the values of a slice."""

    @property
    def columns(self) -> int:
        """Columns of a partial: the values and their weights."""
        return 2


@dataclass(frozen=True, slots=True)
class Values(ValueSource):
    """A list of values; each counts one."""


@dataclass(frozen=True, slots=True)
class WeightedValues(ValueSource):
    """A list of pairs: a value and its weight."""


@dataclass(frozen=True, slots=True)
class ThetaSketch(ValueSource):
    """Hashes below a limit, which is a third column."""

    @property
    def columns(self) -> int:
        return 3


@dataclass(frozen=True, slots=True)
class KllSketch(ValueSource):
    """Samples with weights. A sketch of doubles leaves NaN out: a second column counts them."""

    real: bool


@dataclass(frozen=True, slots=True)
class FrequentItems(ValueSource):
    """The most frequent items, with estimates of their counts."""

    item: type[float] | type[int] | type[str]
