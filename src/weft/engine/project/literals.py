"""Spark SQL literals, read by the type that Spark gave them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Context, Decimal
from functools import lru_cache

import pyarrow as pa

from weft.engine.project.types import TypeKind, kind

_NUMBER = re.compile(r"([+-]?)\s*((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?:BD|[LSYDF])?", re.IGNORECASE)
_QUOTED = re.compile(
    r"""(?:DATE|TIMESTAMP(?:_NTZ|_LTZ)?)?\s*(R?)('(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")""", re.I | re.S
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.S)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_SPAN = re.compile(
    r"\s*'?\s*([+-]?\d+(?:\.\d{1,6})?)'?\s*(week|day|hour|minute|second|millisecond|microsecond)s?\b", re.I
)
_EXACT = Context(prec=80)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.A)
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d(?::\d\d)?)?)?", re.A)
"""Of the forms that Spark reads, those that Python reads alike."""


@lru_cache(maxsize=4096)
def parse_literal(text: int | str | None, type: pa.DataType) -> pa.Scalar:
    """The value of a literal; raises `ValueError` if the text is no literal of `type`.

    >>> parse_literal("2.5", pa.decimal128(2, 1)).as_py(), parse_literal("'it''s'", pa.string()).as_py()
    (Decimal('2.5'), "it's")
    """
    words = "" if text is None else str(text).strip()
    family = kind(type)
    if words.upper() == "NULL":
        return pa.scalar(None, type)
    if family is TypeKind.BOOLEAN:
        return pa.scalar(bool(["FALSE", "TRUE"].index(words.upper())))
    if family is TypeKind.STRING:
        return pa.scalar(_unquote(words), type)
    if family is TypeKind.DATE:
        return pa.scalar(date.fromisoformat(_matching(_DAY, _unquote(words).strip())), type)
    if family in (TypeKind.TIMESTAMP, TypeKind.NTZ):
        return pa.scalar(_instant(_unquote(words).strip(), zoned=family is TypeKind.TIMESTAMP), type)
    if family is TypeKind.DURATION:
        return pa.scalar(_span(words), type)
    if family not in (TypeKind.INTEGER, TypeKind.DECIMAL, TypeKind.FLOAT):
        _no(words)
    match = _NUMBER.fullmatch(words) or _no(words)
    number = match[1] + match[2]
    if family is TypeKind.FLOAT:
        return pa.scalar(float(number), type)
    if family is TypeKind.INTEGER:
        return pa.scalar(int(number), type)
    return pa.scalar(Decimal(number).quantize(Decimal(1).scaleb(-type.scale), context=_EXACT), type)


def as_instant(text: int | str | None, zone: tzinfo) -> str:
    """A timestamp literal as one that names its offset: its text is read in the session's time zone.

    A local time that the zone skips or has twice is read with the offset before the change, as in Java.

    >>> from zoneinfo import ZoneInfo
    >>> as_instant("TIMESTAMP '2024-03-10 02:30:00'", ZoneInfo("America/New_York"))
    "'2024-03-10T07:30:00+00:00'"
    """
    words = "" if text is None else str(text).strip()
    return (
        words
        if words.upper() == "NULL"
        else f"'{_instant(_unquote(words).strip(), zoned=True, zone=zone).isoformat()}'"
    )


def _matching(form: re.Pattern[str], words: str) -> str:
    return words if form.fullmatch(words) else _no(words)[0]


def _no(words: str) -> re.Match[str]:
    raise ValueError(f"not a literal: {words}")


def _unquote(words: str) -> str:
    match = _QUOTED.fullmatch(words) or _no(words)
    mark, body = match[2][0], match[2][1:-1]
    if match[1]:
        return body
    pieces = re.compile(_ESCAPE.pattern + "|" + mark * 2, re.S)
    return pieces.sub(lambda escape: _unescape(escape[1]) if escape[1] else mark, body)


def _unescape(code: str) -> str:
    if code[0] in "uU" and len(code) > 1:
        return chr(int(code[1:], 16))
    if len(code) == 3:
        return chr(int(code, 8))
    return _ESCAPED.get(code, code)


def _instant(text: str, *, zoned: bool, zone: tzinfo = UTC) -> datetime:
    instant = datetime.fromisoformat(_matching(_TIME, text))
    if not zoned:
        return instant.replace(tzinfo=None)
    return (instant.replace(tzinfo=zone) if instant.tzinfo is None else instant).astimezone(UTC)


def _span(words: str) -> timedelta:
    """`INTERVAL 5 MINUTES`, `INTERVAL '5' MINUTE`, `INTERVAL '1 hour 30 minutes'`."""
    head = re.match(r"([+-]?)\s*INTERVAL\b", words, re.I) or _no(words)
    at, total = head.end(), timedelta()
    while at < len(words.rstrip("' ")):
        part = _SPAN.match(words, at) or _no(words)
        total += timedelta(**{part[2].lower() + "s": float(part[1]) if "." in part[1] else int(part[1])})
        at = part.end()
    return -total if head[1] == "-" else total
