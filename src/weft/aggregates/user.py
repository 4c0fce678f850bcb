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
from typing import Any, Protocol, runtime_checkable

from weft.aggregates.component import KINDS, Algebra, Component, Kind
from weft.aggregates.holistic import HOLISTIC
from weft.aggregates.registry import AGGREGATES, BUILT_IN, Aggregate, guarded
from weft.model import WeftError

Row = tuple[float, ...]

WIDEST = 6
"""The most columns of a partial."""


class UserAggregate(Protocol):
    """A partial is a row of doubles. `combine` is associative and compiled by numba: numbers and tuples only."""

    lift: tuple[str, ...]
    """Native Spark aggregates over the rows of a slice, one a column; `{0}`, `{1}` stand for the arguments."""
    identity: Row
    """What a column counts for where Spark's aggregate is NULL; `combine` with it changes nothing."""

    @staticmethod
    def combine(older: Row, newer: Row) -> Row: ...

    @staticmethod
    def lower(*columns: Any) -> Any:
        """The answers, a DOUBLE each, from the columns of combined partials as numpy arrays; NaN is given as NULL."""


@runtime_checkable
class Mergeable(Protocol):
    """Spark too can combine its partials, in any order: groupings that have it may be rolled up from a finer one."""

    merge: tuple[str, ...]
    """Native Spark aggregates over the columns of partials, one a column; `{0}` stands for the first column."""


@runtime_checkable
class Invertible(Protocol):
    """Can also forget the oldest, exactly: `remove(combine(a, b), a) == b`."""

    @staticmethod
    def remove(whole: Row, oldest: Row) -> Row: ...


class InvalidAggregate(WeftError):
    """A definition that no technique could use."""


USERS: dict[str, type[UserAggregate]] = {}
"""By SQL name. Executors learn from a job's layout what the driver registered."""


def register(name: str, definition: type[UserAggregate], *, arguments: int = 1, commutative: bool = True) -> None:
    """Make an aggregate known to SQL by `name`; a later definition of the same name takes its place."""
    name = name.lower()
    _check(name, definition, arguments)
    algebra = Algebra.ASSOCIATIVE
    if commutative:
        algebra |= Algebra.COMMUTATIVE
    if isinstance(definition, Invertible):
        algebra |= Algebra.INVERTIBLE
    USERS[name] = definition
    merges = tuple(definition.merge) if isinstance(definition, Mergeable) else ()
    KINDS[name] = Kind(tuple(definition.lift), algebra, merges)
    AGGREGATES[name] = Aggregate(
        lambda call, types: (Component(name, tuple(guarded(call, a) for a in call.arguments)),),
        name,
        (arguments, arguments),
    )


def learn(users: Mapping[str, type[UserAggregate]]) -> None:
    """In an executor: what a bucket must know of aggregates that the driver registered."""
    for name, definition in users.items():
        USERS[name] = definition
        KINDS[name] = Kind(tuple(definition.lift), Algebra.ASSOCIATIVE)


def _check(name: str, definition: type[UserAggregate], arguments: int) -> None:
    def wrong(what: str) -> InvalidAggregate:
        return InvalidAggregate(f"{name} cannot be an aggregate: {what}")

    if not re.fullmatch(r"[a-z_][a-z0-9_]*", name):
        raise wrong("its name must be letters, digits and underscores")
    if name in BUILT_IN | HOLISTIC.keys() or name in KINDS.keys() - USERS.keys():
        raise wrong("weft has one of that name; choose another")
    lift, identity = getattr(definition, "lift", ()), getattr(definition, "identity", ())
    if isinstance(lift, str) or not 1 <= len(lift) <= WIDEST:
        raise wrong(f"`lift` must be a tuple of 1 to {WIDEST} Spark aggregates, such as ('sum({{0}})', 'count({{0}})')")
    if len(identity) != len(lift):
        raise wrong(f"`identity` must have a number for each of the {len(lift)} columns that `lift` makes")
    merge = getattr(definition, "merge", lift)
    if isinstance(merge, str) or len(merge) != len(lift):
        raise wrong(f"`merge` must have a Spark aggregate for each of the {len(lift)} columns that `lift` makes")
    places = {int(place) for text in lift for place in re.findall(r"\{(\d+)\}", text)}
    if places and max(places) >= arguments:
        raise wrong(f"`lift` uses more arguments than {arguments}; say arguments={max(places) + 1}")
    for part in ("combine", "lower"):
        if not isinstance(getattr(definition, part, None), Callable):  # type: ignore[arg-type]
            raise wrong(f"it has no static method `{part}`")
    zero = tuple(map(float, identity))
    if tuple(map(float, definition.combine(zero, zero))) != zero:
        raise wrong("combining its identity with itself must give the identity")
