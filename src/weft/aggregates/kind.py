"""Kinds of components: how one is lifted from rows, merged by Spark, combined over slices and held in hash tables."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Flag, IntEnum, auto

from weft.aggregates.combining import Combining, ValueList


class Algebra(Flag):
    """Properties of `combine`; a technique needs some of them."""

    ASSOCIATIVE = auto()
    COMMUTATIVE = auto()
    INVERTIBLE = auto()
    """Can forget the oldest exactly: `remove(combine(a, b), a) == b`. Integers can, floats cannot."""
    SELECTIVE = auto()
    """`combine(a, b)` is a or b."""


FOLD = Algebra.ASSOCIATIVE | Algebra.COMMUTATIVE
CHOICE = FOLD | Algebra.SELECTIVE


class TableOperation(IntEnum):
    """How two values of a column of a hash table become one."""

    SUM = 0
    GREATEST = 1
    LEAST = 2
    ALL_BITS = 3
    ANY_BIT = 4
    ODD_BITS = 5


@dataclass(frozen=True, slots=True)
class TableSlot:
    """How a hash table in a task holds a component: one number of 64 bits per group."""

    operation: TableOperation
    row: str | None = "({0})"
    """A row's number (Spark SQL), over the arguments; None: every row counts one."""
    boolean: bool = False
    """Whether `row` is true or false, for any type of the argument."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of component. Texts are Spark SQL; `{setting}` stands for the component's setting."""

    name: str
    """Written into checkpoints: a kind keeps its name."""
    lift: tuple[str, ...]
    """A partial from rows: native aggregates, one per column, over the arguments `{0}`, `{1}`."""
    combine: Combining
    """How partials of slices become one."""
    algebra: Algebra = FOLD
    merge: tuple[str, ...] = ()
    """How Spark merges partials: an aggregate per column, over the columns `{0}`, `{1}`. Empty: it cannot, and each
    grouping computes the component from rows."""
    row: tuple[str, ...] = ()
    """A row as a partial, one text per column over the arguments, in the types of `lift`. Empty: rows must be
    aggregated first."""
    table: TableSlot | None = None
    """None: a hash table cannot hold it."""

    @property
    def width(self) -> int:
        """Columns of a partial as buckets keep it."""
        return self.combine.columns if isinstance(self.combine, ValueList) else len(self.lift)


KINDS: dict[str, Kind] = {}
"""By name. `weft.aggregates.families` fills it, and `register` adds what users define."""
