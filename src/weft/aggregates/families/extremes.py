"""The greatest and the least value, and values of the same row."""

from __future__ import annotations

from weft.aggregates.aggregate import EVENT_TIME, Aggregate, Components, Spelling, Types, guarded, one
from weft.aggregates.combining import ChosenBy, Extreme
from weft.aggregates.component import Component
from weft.aggregates.kind import CHOICE, Kind, TableOperation, TableSlot
from weft.aggregates.lowering import ChosenValue, Value
from weft.model import Call


def _extreme(name: str, greatest: bool, operation: TableOperation) -> Kind:
    lift = (f"{name}({{0}})",)
    return Kind(name, lift, Extreme(greatest), CHOICE, lift, row=("{0}",), table=TableSlot(operation))


def _chosen_by(name: str, greatest: bool, extreme: str) -> Kind:
    """The ordering is the first column, by which `ChosenBy` decides."""
    lift = (f"{extreme}({{1}})", f"{name}({{0}}, {{1}})")
    return Kind(name, lift, ChosenBy(greatest), CHOICE, (f"{extreme}({{0}})", f"{name}({{1}}, {{0}})"))


KINDS = (
    _extreme("max", True, TableOperation.GREATEST),
    _extreme("min", False, TableOperation.LEAST),
    _chosen_by("max_by", True, "max"),
    _chosen_by("min_by", False, "min"),
)


def _by(kind: str) -> Components:
    return lambda call, types: (Component(kind, tuple(guarded(call, argument) for argument in call.arguments)),)


def _in_time(kind: str) -> Components:
    """`first` and `last` by event time: the ordering is NULL for the rows that do not count."""

    def components(call: Call, types: Types) -> tuple[Component, ...]:
        value = call.arguments[0]
        order = f"(CASE WHEN ({value}) IS NOT NULL THEN {EVENT_TIME} END)" if call.ignore_nulls else EVENT_TIME
        return (Component(kind, (guarded(call, value), guarded(call, order))),)

    return components


def _spelling(*aliases: str, ignores_nulls: bool = False) -> Spelling:
    return Spelling(aliases=aliases, repeats=False, ignores_nulls=ignores_nulls)


AGGREGATES = {
    "min": Aggregate(one("min"), Value(), spelling=_spelling()),
    "max": Aggregate(one("max"), Value(), spelling=_spelling()),
    "bool_and": Aggregate(one("min"), Value(), spelling=_spelling("every")),
    "bool_or": Aggregate(one("max"), Value(), spelling=_spelling("some", "any")),
    "max_by": Aggregate(_by("max_by"), ChosenValue(), (2, 2), spelling=_spelling()),
    "min_by": Aggregate(_by("min_by"), ChosenValue(), (2, 2), spelling=_spelling()),
    "first": Aggregate(
        _in_time("min_by"), ChosenValue(), (1, 2), spelling=_spelling("first_value", "any_value", ignores_nulls=True)
    ),
    "last": Aggregate(_in_time("max_by"), ChosenValue(), (1, 2), spelling=_spelling("last_value", ignores_nulls=True)),
}
