"""Numbers in the text of a call."""

from __future__ import annotations

import re

from weft.model import Call


def numbers_of(text: str) -> tuple[float, ...] | None:
    """The numbers of a literal, or of an array of literals; None: it is something else.

    >>> numbers_of("0.5"), numbers_of("array(0.1, 9e-1D)"), numbers_of("p")
    ((0.5,), (0.1, 0.9), None)
    """
    array = re.fullmatch(r"(?i)array\s*\((.*)\)", text.strip())
    parts = (array.group(1) if array else text).split(",")
    numbers = [re.fullmatch(r"(?i)([\d.]+(?:e[+-]?\d+)?)(?:bd|[lsydf])?", part.strip()) for part in parts]
    try:
        return tuple(float(each.group(1)) for each in numbers if each) if all(numbers) else None
    except ValueError:
        return None


def number(call: Call, index: int, default: float) -> float:
    """The argument of a call at this index, as a number; the default if the call has no such argument."""
    numbers = numbers_of(call.arguments[index]) if len(call.arguments) > index else None
    return numbers[0] if numbers else default


def fractions(call: Call) -> tuple[float, ...]:
    """The fractions of a percentile: its second argument."""
    return numbers_of(call.arguments[1]) or ()
