"""The session's time zone, as Python knows it."""

from __future__ import annotations

import re
from datetime import UTC, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

_UTC = ("UTC", "Etc/UTC", "GMT", "Z", "UT", "+00:00")
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::(\d\d)(?::(\d\d))?)?", re.A)


def session_zone(name: str) -> tzinfo | None:
    """The zone that `spark.sql.session.timeZone` names; None if only Java knows it.

    >>> str(session_zone("Etc/UTC")), str(session_zone("-08:30")), str(session_zone("America/New_York"))
    ('UTC', 'UTC-08:30', 'America/New_York')
    """
    if name in _UTC:
        return UTC
    if offset := _OFFSET.fullmatch(name):
        hours, minutes, seconds = (int(part or 0) for part in offset.groups()[1:])
        length = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return timezone(-length if offset[1] == "-" else length)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def same_offset_always(zone: tzinfo | None) -> bool:
    """Whether days all have 24 hours there, and times differ as instants do."""
    return isinstance(zone, timezone)
