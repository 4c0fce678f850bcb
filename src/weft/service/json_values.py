"""Answers as JSON values."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any

import pyarrow as pa


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    columns = [[value(v) for v in column.to_pylist()] for column in table.columns]
    names = distinct(table.column_names)
    return [dict(zip(names, row)) for row in zip(*columns)]


def distinct(names: Sequence[str]) -> list[str]:
    """SQL lets columns have one name, JSON does not.

    >>> distinct(["n", "k", "n"])
    ['n', 'k', 'n_2']
    """
    unique: list[str] = []
    for name in names:
        tried = (name if i == 1 else f"{name}_{i}" for i in count(1))
        unique.append(next(t for t in tried if t not in unique))
    return unique


def columns_of(schema: pa.Schema) -> list[dict[str, str]]:
    return [{"name": name, "type": str(field.type)} for name, field in zip(distinct(schema.names), schema)]


def value(item: Any) -> Any:
    """Times in ISO 8601, decimals as text so that no digit is lost, what JSON has no number for as Spark writes it.

    >>> value(float("nan")), value(Decimal("1.10")), value({"n": [1, None]}), value(b"ab")
    ('NaN', '1.10', {'n': [1, None]}, 'YWI=')
    >>> value(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    '2026-01-02T03:04:05Z'
    """
    match item:
        case float() if not math.isfinite(item):
            return "NaN" if math.isnan(item) else "Infinity" if item > 0 else "-Infinity"
        case datetime():
            return _instant(item)
        case date():
            return item.isoformat()
        case timedelta():
            return item.total_seconds()
        case Decimal():
            return str(item)
        case bytes():
            return base64.b64encode(item).decode()
        case dict():
            return {str(k): value(v) for k, v in item.items()}
        case list() | tuple():
            return [value(v) for v in item]
    return item


def _instant(moment: datetime) -> str:
    if moment.tzinfo is None:
        return moment.isoformat()
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def to_bytes(item: Any) -> bytes:
    return json.dumps(item, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
