"""Aggregates that users define: a small class with `lift`, `combine`, `lower` and perhaps `remove`, then a name in SQL.

class GeometricMean:
    lift = ("sum(ln({0}))", "count({0})")
    identity = (0.0, 0.0)

    @staticmethod
    def combine(older, newer):
        return older[0] + newer[0], older[1] + newer[1]

    @staticmethod
    def lower(logarithms, count):
        return np.exp(logarithms / count)

weft.register("geometric_mean", GeometricMean)
weft.parse("SELECT geometric_mean(price) FROM trades GROUP BY window(ts, '1 minute', '1 second')")
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

from weft.aggregates.aggregate import Aggregate, Types, add_family, guarded
from weft.aggregates.combining import Compiled, Row, UserAggregate
from weft.aggregates.component import Component
from weft.aggregates.families import BUILT_IN, BUILT_IN_KINDS
from weft.aggregates.kind import KINDS, Algebra, Kind
from weft.aggregates.lowering import NanFormula
from weft.model import Call, WeftError

WIDEST = 6
"""The most columns of a partial."""


@runtime_checkable
class Mergeable(Protocol):
    """Spark can combine its partials too, in any order, so a grouping may be rolled up from a finer one."""

    merge: tuple[str, ...]
    """Native Spark aggregates over the columns of partials, one per column; `{0}` stands for the first column."""


@runtime_checkable
class Invertible(Protocol):
    """Can also forget the oldest, exactly: `remove(combine(a, b), a) == b`."""

    @staticmethod
    def remove(whole: Row, oldest: Row) -> Row: ...


class InvalidAggregate(WeftError):
    """A definition that no technique could use."""


USERS: dict[str, type[UserAggregate]] = {}
"""The registered classes, by SQL name."""


def register(name: str, definition: type[UserAggregate], *, arguments: int = 1, commutative: bool = True) -> None:
    """Register an aggregate for SQL as `name`; a later definition replaces an earlier one of the same name."""
    name = name.lower()
    _check(name, definition, arguments)
    algebra = Algebra.ASSOCIATIVE
    if commutative:
        algebra |= Algebra.COMMUTATIVE
    if isinstance(definition, Invertible):
        algebra |= Algebra.INVERTIBLE
    USERS[name] = definition
    merge = tuple(definition.merge) if isinstance(definition, Mergeable) else ()
    kind = Kind(name, tuple(definition.lift), Compiled(definition), algebra, merge)

    def components(call: Call, types: Types) -> tuple[Component, ...]:
        return (Component(name, tuple(guarded(call, a) for a in call.arguments)),)

    add_family([kind], {name: Aggregate(components, NanFormula(definition.lower), (arguments, arguments))})


def learn(kinds: Mapping[str, Kind]) -> None:
    """Add, in an executor, the kinds of components that the driver has and weft does not define."""
    KINDS.update(kinds)


def _check(name: str, definition: type[UserAggregate], arguments: int) -> None:
    def wrong(what: str) -> InvalidAggregate:
        return InvalidAggregate(f"{name} cannot be an aggregate: {what}")

    if not re.fullmatch(r"[a-z_][a-z0-9_]*", name):
        raise wrong("its name must be letters, digits and underscores")
    if name in BUILT_IN | BUILT_IN_KINDS:
        raise wrong("weft has one of that name; choose another")
    lift, identity = getattr(definition, "lift", ()), getattr(definition, "identity", ())
    if isinstance(lift, str) or not 1 <= len(lift) <= WIDEST:
        raise wrong(f"`lift` must be a tuple of 1 to {WIDEST} Spark aggregates, such as ('sum({{0}})', 'count({{0}})')")
    if len(identity) != len(lift):
        raise wrong(f"`identity` must have a number for each of the {len(lift)} columns that `lift` makes")
    merge = getattr(definition, "merge", lift)
    if isinstance(merge, str) or len(merge) != len(lift):
        raise wrong(f"`merge` must have a Spark aggregate for each of the {len(lift)} columns that `lift` makes")
    indices = {int(index) for text in lift for index in re.findall(r"\{(\d+)\}", text)}
    if indices and max(indices) >= arguments:
        raise wrong(f"`lift` uses more arguments than {arguments}; say arguments={max(indices) + 1}")
    for part in ("combine", "lower"):
        if not isinstance(getattr(definition, part, None), Callable):  # type: ignore[arg-type]
            raise wrong(f"it has no static method `{part}`")
    zero = tuple(map(float, identity))
    if tuple(map(float, definition.combine(zero, zero))) != zero:
        raise wrong("combining its identity with itself must give the identity")
