"""Oracles in plain loops: which windows hold a row, which are answered when, and what an answer is.

Slow and obviously right; nothing here knows slices, partials or Spark. Times are integers in microseconds. The module
is long because it holds every aggregate, each with what rounding may do to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from operator import and_, or_, xor
from typing import Any

from tests.support.twin import Call, KeyColumn, Query, Row, ValueColumn, WindowColumn, is_nan, order
from weft.model import Window

Span = tuple[int, int]
"""A window: `[begin, end)`."""


# Windows and watermarks


def windows_of(window: Window, time: int) -> list[Span]:
    """The windows that hold `time`, earliest first.

    >>> windows_of(Window(length=12, slide=9), 10)
    [(0, 12), (9, 21)]
    """
    begin = window.offset + (time - window.offset) // window.slide * window.slide  # the latest one not after `time`
    spans = []
    while begin + window.length > time:
        spans.append((begin, begin + window.length))
        begin -= window.slide
    return spans[::-1]


def watermarks(batches: Sequence[Sequence[int | None]], delay: int) -> list[int | None]:
    """The watermark after each batch of event times; None until a time has been seen.

    >>> watermarks([[None], [5, 9], [7], [30]], delay=2)
    [None, 7, 7, 28]
    """
    marks: list[int | None] = []
    watermark = None
    for times in batches:
        for time in times:
            if time is not None and (watermark is None or time - delay > watermark):
                watermark = time - delay
        marks.append(watermark)
    return marks


@dataclass(frozen=True)
class Emission:
    """What becomes of the rows of a stream under one window. A row is named by its batch and its place in it."""

    counted: list[tuple[tuple[int, int], Span]]
    """Each row with each window that it counts in."""
    answered: list[list[Span]]
    """The windows with rows that are answered after each batch."""
    drained: list[Span]
    """The windows with rows that were still open in the end."""
    late: list[tuple[int, int]]
    """The rows that came after the answer of at least one of their windows."""
    dropped: int
    """The number of (row, window) pairs that came too late."""


def emitted(batches: Sequence[Sequence[int | None]], window: Window, delay: int | None) -> Emission:
    """Follow the event times of each batch; without a delay nothing is answered before the end."""
    marks = [None for _ in batches] if delay is None else watermarks(batches, delay)
    counted, late, dropped = [], [], 0
    before = None  # the watermark before the batch: windows that end by it have been answered
    for b, times in enumerate(batches):
        for i, time in enumerate(times):
            if time is None:
                continue
            spans = windows_of(window, time)
            open_spans = [s for s in spans if before is None or s[1] > before]
            counted += [((b, i), s) for s in open_spans]
            dropped += len(spans) - len(open_spans)
            if len(open_spans) < len(spans):
                late.append((b, i))
        before = marks[b]
    answered: list[list[Span]] = [[] for _ in batches]
    drained = []
    for span in sorted({s for _, s in counted}):
        passed = [b for b, mark in enumerate(marks) if mark is not None and mark >= span[1]]
        (answered[passed[0]] if passed else drained).append(span)
    return Emission(counted, answered, drained, late, dropped)


# Aggregates


def aggregate(function: str, rows: Sequence[tuple[Any, ...]]) -> Any:
    """The value of an aggregate call over the argument tuples of a group's rows; None is NULL.

    `first` and `last` take (value, event time). A decimal mean is a Fraction: its type decides where it is rounded.

    >>> aggregate("sum", [(1,), (None,), (2,)]), aggregate("sum", [(None,)]), aggregate("count", [(None,), (3,)])
    (3, None, 1)
    """
    return AGGREGATES[function]([row for row in rows if None not in row] if function not in KEEPS_NULLS else rows)


KEEPS_NULLS = {"first", "last", "max_by", "min_by"}
"""These look at the rows whose value is NULL too. Everywhere else a NULL argument takes its row out."""


def _first_column(compute: Callable[[list[Any]], Any]) -> Callable[[Sequence[tuple[Any, ...]]], Any]:
    """NULL where no value is left."""
    return lambda rows: compute([row[0] for row in rows]) if rows else None


def _sum(values: list[Any]) -> Any:
    if not isinstance(values[0], float):
        return sum(values[1:], values[0])
    infinities = {v for v in values if math.isinf(v)}
    if any(map(math.isnan, values)) or len(infinities) == 2:
        return math.nan
    return infinities.pop() if infinities else math.fsum(values)


def _avg(values: list[Any]) -> Any:
    total = _sum(values)
    return Fraction(total) / len(values) if isinstance(total, Decimal) else total / len(values)


def _percentile(values: list[Any], fraction: float) -> float:
    """Between the two values around its place in the order, in proportion."""
    ordered = [float(v) for v in sorted(values, key=order)]
    position = (len(ordered) - 1) * fraction
    below, above = math.floor(position), math.ceil(position)
    if ordered[below] == ordered[above] or below == above:
        return ordered[below]
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def _central(values: Sequence[Any], power: int) -> Fraction:
    """The exact sum of the powers of the deviations from the mean."""
    exact = [Fraction(v) for v in values]
    mean = sum(exact) / len(exact)
    return sum((v - mean) ** power for v in exact)


def _variance(values: list[Any], less: int) -> float | None:
    if len(values) <= less:
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    return float(_central(values, 2) / (len(values) - less))


def _root(variance: float | None) -> float | None:
    return None if variance is None else math.sqrt(variance)


def _skewness(values: list[Any]) -> float | None:
    m2 = _central(values, 2)
    return math.sqrt(len(values)) * float(_central(values, 3)) / float(m2) ** 1.5 if m2 else None


def _kurtosis(values: list[Any]) -> float | None:
    m2 = _central(values, 2)
    return float(len(values) * _central(values, 4) / m2**2 - 3) if m2 else None


def _co_deviation(pairs: Sequence[tuple[Any, ...]]) -> Fraction:
    left, right = [[Fraction(v) for v in column] for column in zip(*pairs)]
    mean_left, mean_right = sum(left) / len(left), sum(right) / len(right)
    return sum(((x - mean_left) * (y - mean_right) for x, y in zip(left, right)), Fraction(0))


def _covariance(pairs: Sequence[tuple[Any, ...]], less: int) -> float | None:
    return float(_co_deviation(pairs) / (len(pairs) - less)) if len(pairs) > less else None


def _corr(pairs: Sequence[tuple[Any, ...]]) -> float | None:
    if not pairs:
        return None
    left, right = zip(*pairs)
    squares = _central(left, 2) * _central(right, 2)
    return float(_co_deviation(pairs)) / math.sqrt(squares) if squares else None


def _value_at(pick: Callable[..., Any]) -> Callable[[Sequence[tuple[Any, ...]]], Any]:
    """The first argument of the row that has the least or the greatest second argument."""

    def compute(rows: Sequence[tuple[Any, ...]]) -> Any:
        ordered = [row for row in rows if row[1] is not None]
        return pick(ordered, key=lambda row: order(row[1]))[0] if ordered else None

    return compute


AGGREGATES: dict[str, Callable[[Sequence[tuple[Any, ...]]], Any]] = {
    "count": len,
    "count_if": lambda rows: sum(row[0] for row in rows),
    "sum": _first_column(_sum),
    "avg": _first_column(_avg),
    "min": _first_column(lambda values: min(values, key=order)),
    "max": _first_column(lambda values: max(values, key=order)),
    "var_samp": _first_column(lambda values: _variance(values, 1)),
    "var_pop": _first_column(lambda values: _variance(values, 0)),
    "stddev_samp": _first_column(lambda values: _root(_variance(values, 1))),
    "stddev_pop": _first_column(lambda values: _root(_variance(values, 0))),
    "skewness": _first_column(_skewness),
    "kurtosis": _first_column(_kurtosis),
    "bool_and": _first_column(all),
    "bool_or": _first_column(any),
    "bit_and": _first_column(lambda values: reduce(and_, values)),
    "bit_or": _first_column(lambda values: reduce(or_, values)),
    "bit_xor": _first_column(lambda values: reduce(xor, values)),
    "covar_samp": lambda pairs: _covariance(pairs, 1),
    "covar_pop": lambda pairs: _covariance(pairs, 0),
    "corr": _corr,
    "first": _value_at(min),
    "last": _value_at(max),
    "min_by": _value_at(min),
    "max_by": _value_at(max),
}
AGGREGATES["count_distinct"] = lambda rows: len({order(row[0]) for row in rows})
AGGREGATES["percentile"] = lambda rows: _percentile([row[0] for row in rows], rows[0][1]) if rows else None
AGGREGATES["median"] = lambda rows: _percentile([row[0] for row in rows], 0.5) if rows else None
AGGREGATES["mean"] = AGGREGATES["avg"]
AGGREGATES["variance"] = AGGREGATES["var_samp"]
AGGREGATES["stddev"] = AGGREGATES["std"] = AGGREGATES["stddev_samp"]
AGGREGATES["every"], AGGREGATES["some"] = AGGREGATES["bool_and"], AGGREGATES["bool_or"]


# How far apart two right answers may be

ROUNDING = 1e-12
"""What rounding may do to a sum of up to a few thousand terms, as a share of the sum of their sizes."""


def slack(function: str, rows: Sequence[tuple[Any, ...]]) -> float | None:
    """The absolute error that rounding alone may bring into a call, whatever order the rows are added in.

    None: none at all, the value is exact. It stands beside the relative error that is allowed anyway, and matters where
    large inputs cancel. Sums may be off by a share of `sum(|x|)`. Deviations are as good as the differences from the
    mean: a difference is off by a share of the size of the values, so squares of differences by its product with the
    differences. Formulas over plain power sums, `sum(x*x) - sum(x)**2/n`, do worse and are not excused.
    """
    present = [row for row in rows if None not in row]
    if function not in SLACKS:
        return None
    if not present or not all(math.isfinite(v) for row in present for v in row):
        return 0.0
    if function in ("sum", "avg", "mean") and not any(isinstance(row[0], float) for row in present):
        return 0.0
    return SLACKS[function](present)


def _size(values: Sequence[Any]) -> float:
    return math.sqrt(math.fsum(float(v) * float(v) for v in values))


def _spread(values: Sequence[Any]) -> float:
    return math.sqrt(_central(values, 2))


def _condition(values: Sequence[Any]) -> float:
    spread = _spread(values)
    return _size(values) / spread if spread else 1.0


def _variance_slack(values: Sequence[Any]) -> float:
    error = ROUNDING * _size(values)
    return (error * _spread(values) + error * error) / max(1, len(values) - 1)


def _deviation_slack(values: Sequence[Any]) -> float:
    return ROUNDING * _size(values) / math.sqrt(max(1, len(values) - 1))


def _covariance_slack(pairs: Sequence[tuple[Any, ...]]) -> float:
    left, right = zip(*pairs)
    error = _size(left) * _spread(right) + _spread(left) * _size(right) + ROUNDING * _size(left) * _size(right)
    return ROUNDING * error / max(1, len(pairs) - 1)


def _moment_slack(values: Sequence[Any], power: int) -> float:
    """Of the standardised moment `n**(p/2-1) * sum(d**p) / sum(d*d)**(p/2)`."""
    spread = _spread(values)
    if not spread:
        return 0.0
    mean = math.fsum(values) / len(values)
    terms = math.fsum(abs(v - mean) ** power for v in values) * len(values) ** (power / 2 - 1) / spread**power
    return terms * (1e-9 + ROUNDING * _condition(values))


def _of_first(compute: Callable[..., float]) -> Callable[[Sequence[tuple[Any, ...]]], float]:
    return lambda rows: compute([row[0] for row in rows])


SLACKS: dict[str, Callable[[Sequence[tuple[Any, ...]]], float]] = {
    "sum": _of_first(lambda values: ROUNDING * math.fsum(map(abs, values))),
    "avg": _of_first(lambda values: ROUNDING * math.fsum(map(abs, values)) / len(values)),
    "skewness": _of_first(lambda values: _moment_slack(values, 3)),
    "kurtosis": _of_first(lambda values: _moment_slack(values, 4)),
    "corr": lambda pairs: 1e-9 + ROUNDING * sum(_condition(column) for column in zip(*pairs)),
}
SLACKS["mean"] = SLACKS["avg"]
SLACKS |= dict.fromkeys(("var_samp", "var_pop", "variance"), _of_first(_variance_slack))
SLACKS |= dict.fromkeys(("stddev_samp", "stddev_pop", "stddev", "std"), _of_first(_deviation_slack))
SLACKS |= dict.fromkeys(("covar_samp", "covar_pop"), _covariance_slack)


# Answers


@dataclass(frozen=True)
class Answer:
    """One row of a query's answer, cells in output order; `slacks` beside them, None for what is exact."""

    window: Span
    cells: tuple[Any, ...]
    slacks: tuple[float | None, ...]


@dataclass(frozen=True)
class Answers:
    """What a query gives after each batch, and at the end."""

    query: Query
    batches: list[list[Answer]]
    drained: list[Answer]
    late: int
    """Rows that pass the query's filter and missed at least one of their windows."""

    def __iter__(self) -> Iterator[Answer]:
        for batch in self.batches:
            yield from batch
        yield from self.drained


def answers(query: Query, batches: Sequence[Sequence[Row]], delay: int | None = None) -> Answers:
    """The answers of a query on batches of rows; without a delay all of them come at the end."""
    emission = emitted([[row["ts"] for row in batch] for batch in batches], query.window, delay)
    groups: dict[Span, dict[tuple[Any, ...], list[Row]]] = {}
    for (b, i), span in emission.counted:
        row = batches[b][i]
        if _passes(query, row):
            key = tuple(_group_value(k.of(row)) for k in query.keys)
            groups.setdefault(span, {}).setdefault(key, []).append(row)

    def answer_all(spans: list[Span]) -> list[Answer]:
        found = (_answer(query, s, key, rows) for s in spans for key, rows in groups.get(s, {}).items())
        return [answer for answer in found if answer is not None]

    late = sum(_passes(query, batches[b][i]) for b, i in emission.late)
    return Answers(query, [answer_all(s) for s in emission.answered], answer_all(emission.drained), late)


def _passes(query: Query, row: Row) -> bool:
    return query.where is None or query.where.of(row) is True


NAN = math.nan
"""The one NaN of group keys: as a dictionary key an object equals itself, even where it is not equal to itself."""


def _group_value(value: Any) -> Any:
    if is_nan(value):
        return NAN
    return 0.0 if isinstance(value, float) and value == 0 else value


def _answer(query: Query, span: Span, key: tuple[Any, ...], rows: list[Row]) -> Answer | None:
    if query.having is not None and _value(query.having, rows)[0] is not True:
        return None
    cells: list[tuple[Any, float | None]] = []
    for column in query.columns:
        match column:
            case KeyColumn():
                cells.append((key[column.index], None))
            case WindowColumn():
                cells.append(({"window": span, "start": span[0], "end": span[1]}[column.part], None))
            case ValueColumn():
                cells.append(_value(column, rows))
    return Answer(span, tuple(c for c, _ in cells), tuple(s for _, s in cells))


def _value(column: ValueColumn, rows: list[Row]) -> tuple[Any, float | None]:
    arguments = [_arguments(call, rows) for call in column.calls]
    value = column.of(*(aggregate(call.function, a) for call, a in zip(column.calls, arguments)))
    slacks = [slack(call.function, a) for call, a in zip(column.calls, arguments)]
    inexact = [s for s in slacks if s is not None]
    return value, column.gain * math.fsum(inexact) if inexact else None


def _arguments(call: Call, rows: list[Row]) -> list[tuple[Any, ...]]:
    return [values for values in map(call.values, rows) if values is not None]
