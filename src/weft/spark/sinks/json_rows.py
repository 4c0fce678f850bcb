"""Answers as JSON, a column at a time: text that Spark's from_json reads back as it was."""

from __future__ import annotations

import base64
import datetime
import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def json_rows(columns: Mapping[str, Any]) -> list[str]:
    """
    >>> json_rows({"symbol": pa.array(["A", None]), "price": pa.array([1.5, float("nan")])})
    ['{"symbol":"A","price":1.5}', '{"symbol":null,"price":"NaN"}']
    """
    names = [f"{json.dumps(name, ensure_ascii=False)}:" for name in columns]
    cells = [json_cells(column) for column in columns.values()]
    return ["{" + ",".join(map(str.__add__, names, row)) + "}" for row in zip(*cells, strict=True)]


def json_cells(column: pa.Array | pa.ChunkedArray) -> Sequence[str]:
    type_ = column.type
    if pa.types.is_integer(type_):
        return ["null" if v is None else str(v) for v in column.to_pylist()]
    if pa.types.is_timestamp(type_):
        zone = "Z" if type_.tz is not None else ""
        texts = pc.strftime(column.cast(pa.timestamp("us", type_.tz and "UTC")), f"%Y-%m-%dT%H:%M:%S{zone}").to_pylist()
        return ["null" if v is None else f'"{v}"' for v in texts]
    return [_value(v) for v in column.to_pylist()]


def _value(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return json.dumps(base64.b64encode(value).decode())
    if isinstance(value, datetime.datetime):
        text = value.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ") if value.tzinfo else value.isoformat()
        return json.dumps(text)
    if isinstance(value, datetime.date):
        return json.dumps(value.isoformat())
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(str(k), ensure_ascii=False)}:{_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
