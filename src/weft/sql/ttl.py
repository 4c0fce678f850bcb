"""The time to live of a query, at the end of its text: `FOR 8 HOURS`, or `UNTIL '2026-01-01 00:00:00'`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from weft.model import Ttl
from weft.sql.duration import duration
from weft.sql.refuse import Source
from weft.sql.tokens import Token, Tokens

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def split_ttl(source: Source, tokens: Tokens) -> tuple[Tokens, Ttl | None]:
    """A SELECT without its FOR or UNTIL, and the time to live."""
    at = _where(tokens)
    if at is None:
        return tokens, None
    keyword, limit = tokens[at], tokens[at + 1 :]
    text = source.text[limit[0].start : limit[-1].end]
    try:
        ttl = Ttl(length=ttl_length(text)) if keyword.upper == "FOR" else Ttl(until=instant(limit[-1].text[1:-1]))
    except ValueError as error:
        way_out = "Write FOR 8 HOURS, or UNTIL '2026-01-01 00:00:00'."
        raise source.refuse(keyword.start, limit[-1].end, f"{error}.", way_out) from None
    return tokens[:at], ttl


def _where(tokens: Tokens) -> int | None:
    """The index of FOR or UNTIL outside of parentheses, if a duration or a string follows it up to the end."""
    for at in range(len(tokens) - 2, 0, -1):
        token, behind = tokens[at], tokens[at + 1 :]
        if token.text in (")", "]"):
            return None
        if token.upper == "UNTIL":
            texts = [t for t in behind if t.upper != "TIMESTAMP"]
            return at if len(texts) == 1 and texts[0].kind == "string" else None
        if token.upper == "FOR":
            return at if _begins_duration(behind[0]) else None
    return None


def _begins_duration(token: Token) -> bool:
    return token.kind in ("number", "string") or token.upper == "INTERVAL"


def ttl_length(text: str) -> int:
    """Microseconds of a time to live.

    >>> ttl_length("8 hours"), ttl_length("'90' minutes")
    (28800000000, 5400000000)
    """
    micros = duration(text if text.upper().startswith("INTERVAL") or "'" not in text else f"INTERVAL {text}")
    if micros <= 0:
        raise ValueError(f"a query that lives for {text} answers nothing")
    return micros


def instant(text: str) -> int:
    """Microseconds since 1970; a time without a zone is in UTC.

    >>> instant("1970-01-01 00:00:01"), instant("1970-01-01T02:00:00+01:00")
    (1000000, 3600000000)
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text!r} is not an instant") from None
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - EPOCH) // timedelta(microseconds=1)
