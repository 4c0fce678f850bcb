"""Workloads as the papers draw them: slides by Zipf, overlap factors uniform; the same for the same seed.

>>> workload = generate(Shape(number=2, maximum_slide=60, maximum_overlap=10, skew=0.6, slides="factors"))
>>> print(to_sql(workload).rstrip())
CREATE VIEW q1 AS SELECT max(price) FROM stream GROUP BY window(ts, '472 seconds', '60 seconds');
CREATE VIEW q2 AS SELECT max(price) FROM stream GROUP BY window(ts, '13 seconds', '4 seconds');
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp, log
from random import Random

from weft.model import ACQ, PlanError, Window, Workload
from weft.sql import parse

SECOND = 1_000_000
UNITS = (("seconds", SECOND), ("milliseconds", 1_000), ("microseconds", 1))

TEMPLATE = "SELECT max(price) FROM stream GROUP BY window(ts, '{range}', '{slide}')"


class InvalidShape(PlanError):
    """Parameters that no workload can have."""


def _any(longest: int) -> Iterable[int]:
    return range(longest, 0, -1)


def _factors(longest: int) -> Iterable[int]:
    return (n for n in range(longest, 0, -1) if longest % n == 0)


def _primes(longest: int) -> Iterable[int]:
    return (n for n in range(longest, 1, -1) if all(n % d for d in range(2, int(n**0.5) + 1)))


SLIDES: Mapping[str, Callable[[int], Iterable[int]]] = {
    "normal": _any,
    # No two primes share a factor: hardly any edges are common.
    "diverse": _primes,
    # The papers' templates: slides that people choose divide one another.
    "factors": _factors,
}
"""Which slides there are up to the maximum, the longest first."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a workload is drawn from, in the words of the papers; times in units of `unit` microseconds."""

    number: int = 100
    """Qnum"""
    maximum_slide: int = 3600
    """Smax"""
    rate: Fraction = Fraction(100)
    """Rows per second. Says nothing about the queries, but a plan needs it."""
    skew: float = 0.6
    """Zskew: 0 draws all slides alike, above 0 long ones more often, below 0 short ones."""
    maximum_overlap: float = 50
    """Omax: range / slide is uniform between 1 and this."""
    slides: str = "factors"
    seed: int = 1
    unit: int = SECOND

    def __post_init__(self) -> None:
        for name, least in (("number", 1), ("maximum_slide", 1), ("maximum_overlap", 1), ("unit", 1), ("rate", 0)):
            if getattr(self, name) < least:
                raise InvalidShape(f"{name.replace('_', ' ')} must be at least {least}, got {getattr(self, name)}")
        if self.slides not in SLIDES:
            raise InvalidShape(f"there are no {self.slides!r} slides; choose one of {', '.join(SLIDES)}")
        if not any(True for _ in SLIDES[self.slides](self.maximum_slide)):
            raise InvalidShape("diverse slides are primes, and 1 is none; give a maximum slide of at least 2")


def generate(shape: Shape) -> Workload:
    random = Random(shape.seed)
    slides = list(SLIDES[shape.slides](shape.maximum_slide))
    # Not rank**skew: with a skew of 100 that passes the greatest float.
    weights = [exp(-shape.skew * log(rank)) for rank in range(1, len(slides) + 1)]
    (query,) = parse(TEMPLATE.format(range="1 second", slide="1 second"))
    queries = []
    for number, slide in enumerate(random.choices(slides, weights, k=shape.number), 1):
        length = max(slide, round(slide * random.uniform(1, shape.maximum_overlap)))
        queries.append(_with_window(query, f"q{number}", Window(length * shape.unit, slide * shape.unit)))
    return Workload(queries)


def _with_window(query: ACQ, name: str, window: Window) -> ACQ:
    sql = TEMPLATE.format(range=_interval(window.length), slide=_interval(window.slide))
    return replace(query, name=name, window=window, text=f"CREATE VIEW {name} AS {sql}", spark_sql=sql)


def to_sql(workload: Iterable[ACQ]) -> str:
    """A `.sql` file that `weft.parse` reads back."""
    return "".join(f"{query.text};\n" for query in workload)


def _interval(microseconds: int) -> str:
    """
    >>> _interval(16_000_000), _interval(1_500_000)
    ('16 seconds', '1500 milliseconds')
    """
    unit, length = next((unit, length) for unit, length in UNITS if microseconds % length == 0)
    return f"{microseconds // length} {unit}"
