"""The decimal digits that Java before 19 prints for a double, which is what Spark reads a double as a decimal from.

From 19 on Java prints the shortest decimal that reads as the same double, as Python does. Earlier it may print another
one: 2E23 is 1.9999999999999998E23 (JDK-4511638). This is the algorithm of `jdk.internal.math.FloatingDecimal`.
"""

from __future__ import annotations

import math

FIRST_WITH_SHORTEST = 19
"""The Java version from which on doubles print as their shortest decimals."""

_FIVES = tuple((5**power).bit_length() for power in range(27))
_FIVES_IN_64_BITS = 27
_BITS = 53


def java_digits(value: float) -> str:
    """The text of a finite double in Java before 19, as digits and an exponent.

    >>> java_digits(2e23), java_digits(-0.1), java_digits(0.0), java_digits(1700000000000.0)
    ('19999999999999998e7', '-1e-1', '0', '1700000000000e0')
    """
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    fraction, exponent = math.frexp(abs(value))
    significant, exponent = int(math.ldexp(fraction, _BITS)), exponent - 1
    bits = _BITS if exponent >= -1022 else _BITS + exponent + 1022  # subnormal numbers have fewer
    digits, exponent = _digits(significant, exponent, bits)
    return f"{sign}{digits}e{exponent}"


def _digits(fraction: int, exponent: int, bits: int) -> tuple[int, int]:
    """The digits of `fraction * 2**(exponent - 52)`, and the power of ten that they are multiplied with."""
    zeros = (fraction & -fraction).bit_length() - 1
    width = _BITS - zeros
    below_point = max(0, width - exponent - 1)
    if below_point == 0 and exponent <= 62:
        return _integer(fraction << exponent >> (_BITS - 1), exponent, bits)
    point = math.floor(((fraction / 2**52) - 1.5) * 0.289529654 + 0.176091259 + exponent * 0.301029995663981)
    five = max(0, -point)
    ten = max(0, point)
    value2, scale2 = five + below_point + exponent - (width - 1), ten + below_point
    half2 = five + below_point + exponent - bits
    common = min(value2, scale2)
    value2, scale2, half2 = value2 - common, scale2 - common, half2 - common
    if width == 1:  # below a power of two the next number is only half as far away
        half2 -= 1
    if half2 < 0:
        value2, scale2, half2 = value2 - half2, scale2 - half2, 0
    needed = max(width + value2 + _five_bits(five), scale2 + 1 + _five_bits(ten + 1))
    word = 32 if needed < 32 else 64 if needed < 64 else None
    return _generate((fraction >> zeros) * 5**five << value2, 5**ten << scale2, 5**five << half2, point, word)


def _five_bits(power: int) -> int:
    return _FIVES[power] if power < _FIVES_IN_64_BITS else 3 * power


def _generate(value: int, scale: int, half: int, point: int, word: int | None) -> tuple[int, int]:
    """Digits of `value / scale` until the rest is within `half`.

    Java computes in words of 32 or 64 bits if they seem to suffice, and `half` may still wrap around in them. Without
    a word it computes exactly, and also stops where the rest is at the limit itself.
    """
    tens = 10 * scale

    def step() -> tuple[int, int, int, bool, bool]:
        quotient, rest = divmod(value, scale)
        rest, margin = 10 * rest, 10 * half
        if word is None:
            return quotient, rest, margin, rest < margin, rest + margin >= tens
        margin = _wrapped(margin, word)
        within = margin <= 0
        return quotient, rest, margin, within or rest < margin, within or _wrapped(rest + margin, word) > tens

    digits, value, half, low, high = step()
    count = 1
    if digits == 0 and not high:
        point, count = point - 1, 0
    if point < -3 or point >= 8:  # a digit after the point is always printed
        low = high = False
    while not (low or high):
        quotient, value, half, low, high = step()
        digits, count = 10 * digits + quotient, count + 1
    if high and (not low or 2 * value > tens or (2 * value == tens and digits % 2 == 1)):
        digits += 1
    return digits, point - max(count, 1) + 1


def _wrapped(value: int, word: int) -> int:
    half = 1 << (word - 1)
    return (value + half) % (2 * half) - half


def _integer(value: int, exponent: int, bits: int) -> tuple[int, int]:
    """Integers print all digits that 53 bits determine."""
    beyond = exponent - bits - 1
    dropped = (0, 0, 0, 0, 1, 1, 1, 2, 2, 2)[beyond] if beyond > 1 else 0
    power = 10**dropped
    return value // power + (value % power >= power // 2 if dropped else 0), dropped
