"""Durations as Spark reads them, in microseconds."""

from __future__ import annotations

import re
from decimal import Decimal

_UNITS = {
    "week": 7 * 86_400_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
_PIECE = re.compile(r"\s*([+-]?)\s*('?)(\d+(?:\.\d{0,9})?|\.\d{1,9})\2\s+([a-z]+?)s?(?=\s|$)", re.IGNORECASE)


def duration(text: str) -> int:
    """Microseconds; a ValueError says what Spark does not accept.

    >>> duration("1 hour 30 minutes"), duration("INTERVAL '10' MINUTES"), duration("1.5 seconds")
    (5400000000, 600000000, 1500000)
    """
    rest = text.strip()
    prefix = re.match(r"interval\s+", rest, re.IGNORECASE)
    if prefix:
        rest = rest[prefix.end() :]
    elif "'" in rest:
        raise ValueError(f"{text!r} is not a duration that Spark can read")
    total, at = 0, 0
    while at < len(rest):
        piece = _PIECE.match(rest, at)
        if piece is None:
            raise ValueError(f"{text!r} is not a duration that Spark can read")
        total += _piece(text, *piece.group(1, 3, 4))
        at = piece.end()
    if at == 0:
        raise ValueError(f"{text!r} is not a duration that Spark can read")
    return total


def _piece(text: str, sign: str, number: str, unit: str) -> int:
    unit, factor = unit.lower(), -1 if sign == "-" else 1
    if unit in ("month", "year"):
        if Decimal(number) == 0:
            return 0
        raise ValueError(f"{text!r} has no fixed length: months and years differ")
    if unit not in _UNITS:
        raise ValueError(f"{unit!r} is not a unit of time that Spark knows")
    if "." in number and unit != "second":
        raise ValueError(f"{text!r} has a fraction, which Spark takes of seconds only")
    return factor * int(Decimal(number) * _UNITS[unit])


def duration_text(microseconds: int) -> str:
    """A duration in the longest unit that divides it.

    >>> duration_text(5_400_000_000), duration_text(-1_500_000), duration_text(0)
    ('90 minutes', '-1500 milliseconds', '0 seconds')
    """
    if microseconds == 0:
        return "0 seconds"
    unit = next(u for u, length in _UNITS.items() if microseconds % length == 0)
    count = microseconds // _UNITS[unit]
    return f"{count} {unit}{'' if abs(count) == 1 else 's'}"
