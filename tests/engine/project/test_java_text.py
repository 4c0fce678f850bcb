"""The digits that Java 17 prints for doubles, taken from Java itself."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.engine.project.java_text import java_digits

PRINTED_BY_JAVA_17 = {
    2e23: "1.9999999999999998E23",
    1e23: "9.999999999999999E22",
    2.2250738585072014e-3: "0.0022250738585072012",
    2.2065708004662117e25: "2.2065708004662116E25",
    2.0**63: "9.223372036854776E18",
    1e-323: "1.0E-323",
    5e-324: "4.9E-324",
    1.7976931348623157e308: "1.7976931348623157E308",
    0.1: "0.1",
    -2 / 3: "-0.6666666666666666",
}


@pytest.mark.parametrize("value", PRINTED_BY_JAVA_17)
def test_a_double_has_the_digits_of_java_17(value: float) -> None:
    assert Decimal(java_digits(value)) == Decimal(PRINTED_BY_JAVA_17[value])


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_digits_read_as_the_same_double_and_are_at_most_18(value: float) -> None:
    text = java_digits(value)
    assert float(text) == value
    assert math.copysign(1, float(text)) == math.copysign(1, value) or value == 0
    assert len(text.split("e")[0].lstrip("-")) <= 19
