"""Casts to and from text, one value at a time. Not doubles to text: Java prints more digits than needed."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa

from weft.engine.project.errors import malformed, overflow
from weft.engine.project.types import TypeKind, kind, type_name

_BLANK = "".join(map(chr, range(33))) + "\x7f"
_INTEGER = re.compile(r"[+-]?\d+", re.A)
_TRUNCATED = re.compile(r"([+-]?\d*)(?:\.\d*)?", re.A)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.A)
_SPECIAL = {"nan": "nan", "inf": "inf", "infinity": "inf", "+inf": "inf", "+infinity": "inf"}
_SPECIAL |= {"-inf": "-inf", "-infinity": "-inf"}
_YES, _NO = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
_EXACT = Context(prec=800, rounding=ROUND_HALF_UP)


def to_text(array: pa.Array, target: pa.DataType, ansi: bool, sql: str) -> pa.Array:
    family = kind(array.type)
    if family is TypeKind.INTEGER:
        return array.cast(target)
    return pa.array([None if v is None else _print(v, ansi) for v in array.to_pylist()], target)


def _print(value: Any, ansi: bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return f"{value:f}" if ansi else str(value)
    if isinstance(value, datetime):
        to_seconds = f"{value:%Y-%m-%d %H:%M:%S}".rjust(19, "0")
        return to_seconds + (f".{value.microsecond:06d}".rstrip("0") if value.microsecond else "")
    assert isinstance(value, date)
    return value.isoformat()


def from_text(array: pa.Array, target: pa.DataType, ansi: bool, sql: str) -> pa.Array:
    """Text as a number or a boolean; other text raises in ANSI mode and is NULL otherwise."""
    return pa.array([None if v is None else _read(v, target, ansi, sql) for v in array.to_pylist()], target)


def _read(text: str, target: pa.DataType, ansi: bool, sql: str) -> Any:
    trimmed = text.strip(_BLANK)
    family = kind(target)
    value: Any = None
    if family is TypeKind.BOOLEAN:
        value = True if trimmed.lower() in _YES else False if trimmed.lower() in _NO else None
    elif family is TypeKind.INTEGER:
        value = _integer(trimmed, target, ansi)
    elif family is TypeKind.FLOAT:
        if trimmed.lower() in _SPECIAL:
            value = float(_SPECIAL[trimmed.lower()])
        elif _NUMBER.fullmatch(trimmed.rstrip("dDfF")) and len(trimmed) - len(trimmed.rstrip("dDfF")) <= 1:
            value = float(trimmed.rstrip("dDfF"))
    elif _NUMBER.fullmatch(trimmed):
        value = Decimal(trimmed).quantize(Decimal(1).scaleb(-target.scale), context=_EXACT)
        if abs(value.scaleb(target.scale, _EXACT)) >= 10**target.precision:
            if ansi:
                raise overflow(sql, type_name(target))
            return None
    if value is None and ansi:
        raise malformed(sql, text, type_name(target))
    return value


def _integer(text: str, target: pa.DataType, ansi: bool) -> int | None:
    """Without ANSI, digits after a point are cut off."""
    match = _INTEGER.fullmatch(text) if ansi else _TRUNCATED.fullmatch(text)
    if match is None or not re.search(r"\d", match[0]):
        return None
    digits = match[0] if ansi else match[1]
    value = int(digits) if digits.strip("+-") else 0
    half = 1 << (target.bit_width - 1)
    return value if -half <= value < half else None
