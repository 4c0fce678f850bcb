"""Physical columns: feeds that need values of the same type use the same ones, so that one aggregation makes all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from weft.aggregates import Component

LATEST = "latest"
"""The column with the greatest event time of a partial's rows; the watermark is computed from it."""


@dataclass(frozen=True, slots=True)
class PhysicalColumns:
    """The columns of keys, arguments and partials, by name."""

    key_types: Mapping[str, str] = field(default_factory=dict)
    argument_types: Mapping[str, str] = field(default_factory=dict)
    slots: Mapping[str, str] = field(default_factory=dict)
    """The aggregate that fills each partial column, over the argument columns."""
    merges: Mapping[str, str] = field(default_factory=dict)
    """The aggregate that makes one of several partials, over the partial columns; only where Spark can."""


class ColumnAllocator:
    """Names columns while a plan is bound: keys `k0`, arguments `a0`, partial columns `c0`."""

    def __init__(self) -> None:
        self._key_types: dict[str, str] = {}
        self._argument_types: dict[str, str] = {}
        self._slots: dict[str, str] = {}
        self._merges: dict[str, str] = {}

    @property
    def columns(self) -> PhysicalColumns:
        """Those that have been named so far."""
        return PhysicalColumns(dict(self._key_types), dict(self._argument_types), dict(self._slots), dict(self._merges))

    def keys(self, types: Mapping[str, str]) -> dict[str, str]:
        """A column for each key of a grouping, by its expression."""
        return _allocate(types, self._key_types, "k")

    def arguments(self, types: Mapping[str, str]) -> dict[str, str]:
        return _allocate(types, self._argument_types, "a")

    def component(self, component: Component, arguments: Mapping[str, str]) -> tuple[str, ...]:
        """The columns of a component over these argument columns."""
        lifts = [lift.format(*(arguments[a] for a in component.arguments)) for lift in component.lifts]
        names = self._names(lifts, {aggregate: name for name, aggregate in self._slots.items()})
        merges = [merge.format(*names) for merge in component.merges]
        if any(self._merges.get(name, merge) != merge for name, merge in zip(names, merges)):
            # The same lift with another merge: possible with users' aggregates.
            names = self._names(lifts, {})
            merges = [merge.format(*names) for merge in component.merges]
        self._slots.update(zip(names, lifts, strict=True))
        self._merges.update(zip(names, merges))
        return names

    def _names(self, lifts: Sequence[str], existing: Mapping[str, str]) -> tuple[str, ...]:
        """The existing column of each aggregate, or the next free name."""
        free_names = (f"c{number}" for number in count(len(self._slots)))
        return tuple(existing[lift] if lift in existing else next(free_names) for lift in lifts)


def _allocate(types: Mapping[str, str], column_types: dict[str, str], prefix: str) -> dict[str, str]:
    """A physical column for each expression: the first of its type that this grouping does not use yet."""
    columns: dict[str, str] = {}
    for expression, spark_type in types.items():
        used = set(columns.values())
        column = next((c for c, t in column_types.items() if t == spark_type and c not in used), None)
        if column is None:
            column = f"{prefix}{len(column_types)}"
            column_types[column] = spark_type
        columns[expression] = column
    return columns
