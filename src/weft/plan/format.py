"""Times, numbers and queries as text."""

from __future__ import annotations

from fractions import Fraction

from weft.aggregates import AGGREGATES
from weft.aggregates.operators import OPERATOR_FACTS
from weft.model import ACQ, Call
from weft.plan.logical import Plan

UNITS = (
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("min", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
)


def duration(microseconds: int) -> str:
    """
    >>> duration(16_000_000), duration(5_400_000_000), duration(1_500), duration(-2_000_000), duration(0)
    ('16 s', '1 h 30 min', '1 ms 500 us', '-2 s', '0 s')
    """
    words, left = [], abs(microseconds)
    for unit, length in UNITS:
        if left >= length:
            words.append(f"{left // length} {unit}")
            left %= length
    return ("-" if microseconds < 0 else "") + " ".join(words or ["0 s"])


def amount(value: Fraction) -> str:
    """Operations per second: two decimals, with thousands separators.

    >>> amount(Fraction(43, 10)), amount(Fraction(1234567))
    ('4.30', '1,234,567.00')
    """
    return f"{float(value):,.2f}"


def between(low: Fraction, high: Fraction | None) -> str:
    """
    >>> between(Fraction(43, 10), None), between(Fraction(43, 10), Fraction(44, 10))
    ('4.30', '4.30 to 4.40')
    """
    return amount(low) if high is None else f"{amount(low)} to {amount(high)}"


def slices(rate: Fraction, high: Fraction | None) -> str:
    """
    >>> slices(Fraction(1, 4), None), slices(Fraction(1, 4), Fraction(1, 3))
    ('0.250 slices/s', '0.250 to 0.333 slices/s')
    """
    return f"{float(rate):,.3f}{'' if high is None else f' to {float(high):,.3f}'} slices/s"


def number(value: Fraction) -> str:
    """A rate as the user wrote it, without trailing zeros.

    >>> number(Fraction(6, 5)), number(Fraction(10_000))
    ('1.2', '10,000')
    """
    return f"{int(value):,}" if value.denominator == 1 else f"{float(value):,.12g}"


def saving(cost: Fraction, unshared: Fraction) -> str:
    """
    >>> saving(Fraction(43, 10), Fraction(55, 10))
    '22 %'
    """
    return f"{float(100 * (1 - cost / unshared)) if unshared else 0.0:.0f} %".replace("-0 %", "0 %")


def at_least(share: Fraction) -> str:
    """A guaranteed share, rounded down.

    >>> at_least(Fraction(2, 3)), at_least(Fraction(1))
    ('66 %', '100 %')
    """
    return f"{int(100 * share)} %"


def guarantee(plan: Plan) -> list[tuple[str, str]]:
    """The guarantees of a plan, each as a word and a sentence."""
    if plan.guarantee is None:
        return []
    best = plan.optimal or plan.guarantee.share == 1
    promise = f"at least {at_least(plan.guarantee.share)} of all possible savings"
    problems = [condition.problem for condition in plan.guarantee.conditions if condition.problem is not None]
    if plan.guarantee.theorem_1:
        theorem = "holds: at least a quarter of all possible savings"
    else:
        theorem = f"does not hold: {'; '.join(problems)}"
    return [("guarantee", "optimal: no plan saves more" if best else promise), ("theorem 1", theorem)]


def operator(name: str) -> str:
    """The aggregates that an operator serves, in words.

    >>> operator("int_sum"), operator("bit_or")
    ('counts and sums of integers', 'bit_or')
    """
    return OPERATOR_FACTS[name].serves or name


def call(aggregate: Call) -> str:
    """
    >>> call(Call("sum", ("price",), condition="volume > 3")), call(Call("count_distinct", ("user",)))
    ('sum(price) FILTER (WHERE volume > 3)', 'count(DISTINCT user)')
    """
    shown = AGGREGATES[aggregate.function].spelling.shown if aggregate.function in AGGREGATES else ""
    every = ", ".join(aggregate.arguments) or "*"
    text = (shown or f"{aggregate.function}({{every}})").format(*aggregate.arguments, every=every)
    if aggregate.ignore_nulls:
        text += " IGNORE NULLS"
    return f"{text} FILTER (WHERE {aggregate.condition})" if aggregate.condition else text


def calls(query: ACQ) -> str:
    return ", ".join(call(aggregate) for aggregate in query.calls)


def extras(query: ACQ) -> str:
    """Optional parts of a query: offset, SLIDE AT MOST, keys and filter."""
    parts = []
    if query.shown.offset:
        parts.append(f"offset {duration(query.shown.offset)}")
    if query.refresh == "at_most":
        every = "" if query.requested_window is None else f", at multiples of {duration(query.window.slide)}"
        first = f", priority {query.priority}" if query.priority else ""
        parts.append(f"answers at most a slide apart{every}{first}")
    if query.keys:
        parts.append(f"by {', '.join(query.keys)}")
    if query.where:
        parts.append(f"where {query.where}")
    return "  ".join(parts)
