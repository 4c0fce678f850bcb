"""The aggregates by SQL name: their components, how answers are read from these, and how calls are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from weft.aggregates.component import Component
from weft.aggregates.kind import KINDS, Kind
from weft.aggregates.lowering import AnswerLowering, FromValues
from weft.model import Call

EVENT_TIME = "_weft_time"
"""The event time in microseconds, a column that the job adds: `first` and `last` are ordered by it."""

MANY = 999

Types = Mapping[str, str]
"""The Spark type of each argument, by its SQL text."""


class ArgumentTypes(dict[str, str]):
    """`Types` of a session that knows its mode: without ANSI, sums of decimals are NULL where they overflow."""

    def __init__(self, types: Types, *, ansi: bool) -> None:
        super().__init__(types)
        self.ansi = ansi


Components = Callable[[Call, Types], tuple[Component, ...]]


@dataclass(frozen=True, slots=True)
class Spelling:
    """How SQL writes calls that are not simply `name(x)`."""

    aliases: tuple[str, ...] = ()
    """Other names of it in Spark."""
    distinct: str = ""
    """The aggregate that `name(DISTINCT x)` calls; empty: DISTINCT is refused, unless repeated values do not count."""
    repeats: bool = True
    """Whether repeated values change the answer."""
    star: bool = False
    """`name(*)` counts rows, and so does `name(1)`."""
    ignores_nulls: bool = False
    """Takes IGNORE NULLS, or the same as a second argument: true or false."""
    needless_flag: bool = False
    """A literal as second argument changes nothing."""
    within_group: Mapping[str, str] = field(default_factory=dict)
    """Names that may be written with WITHIN GROUP (ORDER BY x), and their form; x becomes the first argument."""
    descending: str = ""
    """The aggregate that WITHIN GROUP (ORDER BY x DESC) calls; empty: DESC is refused."""
    needs_within_group: tuple[str, ...] = ()
    """Those of the names that must be written so."""
    numbers_from: int | None = None
    """The index of the first argument that must be a literal number, like all after it; None: there is none."""
    items: int | None = None
    """The index of the argument with the number of items of an answer, a positive integer; None: there is none."""
    filter_problem: str = ""
    """Why it takes no FILTER; empty: it does."""
    example: str = ""
    """An example call for messages, if `name(x)` is not a valid call."""
    shown: str = ""
    """The call in plans and messages, if it is not written by name, over the arguments `{0}`, `{1}` or `{every}`."""
    stand_in: str = ""
    """A Spark expression of the same type, over `{0}`, `{1}` and `{filter}`; empty: Spark has this aggregate."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    components: Components
    """The components of a call."""
    lower: AnswerLowering
    """How the answer is read from the components."""
    arity: tuple[int, int] = (1, 1)
    numbers: Callable[[Call], tuple[float, ...]] = lambda call: ()
    """Numbers of the call that the answer depends on, such as the fractions of a percentile."""
    refusal: Callable[[Call, Types], str | None] = lambda call, types: None
    """Why weft cannot serve a call with arguments of these types; None: it can."""
    approximations: Callable[[Call], tuple[Call, ...]] = lambda call: ()
    """Calls with approximately the same answer that keep a sketch, the most accurate first."""
    spelling: Spelling = Spelling()
    takes_void: bool = False
    """NULL without a type can be an argument."""


AGGREGATES: dict[str, Aggregate] = {}
"""By SQL name. `weft.aggregates.families` fills it, and `register` adds what users define."""

ALIASES: dict[str, str] = {}
"""Other names of aggregates."""

STAND_INS: dict[str, str] = {}
"""Aggregates that Spark does not have, and the expressions that it analyses instead."""


def add_family(kinds: Iterable[Kind], aggregates: Mapping[str, Aggregate]) -> None:
    """Register kinds and aggregates; a later one replaces an earlier one of the same name."""
    KINDS.update({kind.name: kind for kind in kinds})
    AGGREGATES.update(aggregates)
    for name, aggregate in aggregates.items():
        spelling = aggregate.spelling
        ALIASES.update(dict.fromkeys(spelling.aliases, name))
        if spelling.stand_in:
            STAND_INS.update(dict.fromkeys((name, *spelling.aliases), spelling.stand_in))


def components(calls: Sequence[Call], types: Types) -> tuple[Component, ...]:
    """The components of these calls, each once, in the order of first use."""
    return tuple(dict.fromkeys(c for call in calls for c in AGGREGATES[call.function].components(call, types)))


def keeps_values(call: Call) -> bool:
    """Whether the call keeps values, or a sketch of them: partials without a fixed size."""
    return isinstance(AGGREGATES[call.function].lower, FromValues)


def guarded(call: Call, argument: str) -> str:
    """`FILTER (WHERE c)` as an argument that is NULL if c is not true: all aggregates skip NULL."""
    return argument if call.condition is None else f"(CASE WHEN {call.condition} THEN {argument} END)"


def one(kind: str) -> Components:
    """One component of this kind over the first argument."""
    return lambda call, types: (Component(kind, (guarded(call, call.arguments[0]),)),)
