"""Whether weft and Spark gave the same columns and rows, for every type that Spark has."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.compare import RELATIVE

READABLE = re.compile(r"(tinyint|smallint|int|bigint|float|double|decimal\(\d+,\d+\)|string|binary|boolean)$")
"""Types whose values Python holds; others are compared as text, which says as much."""

FRACTION = re.compile(r"-?\d+\.\d+(E-?\d+)?$")


@dataclass(frozen=True)
class Answer:
    """The columns of an answer with their types, and its rows."""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Difference:
    kind: str
    detail: str

    @property
    def rows(self) -> bool:
        return self.kind == "rows differ"


def read_answer(frame: Any) -> Answer:
    """Values that Python cannot hold, such as times before the year 1, are read as text."""
    columns = tuple((f.name, f.dataType.simpleString()) for f in frame.schema.fields)
    names = [f"c{i}" for i in range(len(columns))]
    read = [name if _is_readable(t) else _as_text(name, t) for name, (_, t) in zip(names, columns)]
    return Answer(columns, tuple(tuple(row) for row in frame.toDF(*names).selectExpr(*read).collect()))


def _is_readable(type: str) -> bool:
    inner = re.sub(r"array<|struct<|map<|>", " ", type)
    return all(READABLE.match(part.strip().rsplit(":", 1)[-1]) for part in re.split(r",(?![^(]*\))", inner))


def _as_text(name: str, type: str) -> str:
    if type.startswith("string collate"):  # which of 'a' and 'A' stands for both is not determined
        return f"lower(CAST({name} AS STRING) COLLATE UTF8_BINARY)"
    if type.startswith("array<"):
        inner = type.removeprefix("array<").removesuffix(">")
        return f"transform({name}, x -> {_as_text('x', inner)})"
    if type == "timestamp":
        return f"unix_micros({name})"
    if type.startswith("variant"):
        return f"to_json({name})"
    if type.startswith("geo"):
        return f"hex(st_asbinary({name}))"
    return f"CAST({name} AS STRING)"


def differences(
    actual: Answer, expected: Answer, unordered: Sequence[bool], relative: float = RELATIVE
) -> Difference | None:
    """The first difference, or None."""
    if [n for n, _ in actual.columns] != [n for n, _ in expected.columns]:
        return Difference(
            "names differ", f"{[n for n, _ in actual.columns]} instead of {[n for n, _ in expected.columns]}"
        )
    if actual.columns != expected.columns:
        return Difference(
            "types differ", f"{[t for _, t in actual.columns]} instead of {[t for _, t in expected.columns]}"
        )
    ours, theirs = _by_shape(actual, unordered), _by_shape(expected, unordered)
    for shape in [*theirs, *(s for s in ours if s not in theirs)]:
        if len(ours.get(shape, ())) != len(theirs.get(shape, ())):
            return _differ(
                actual, expected, f"{len(ours.get(shape, ()))} instead of {len(theirs.get(shape, ()))} times {shape}"
            )
        for left, right in zip(sorted(ours[shape]), sorted(theirs[shape])):
            if not all(math.isclose(a, b, rel_tol=relative, abs_tol=1e-12) for a, b in zip(left, right)):
                return _differ(actual, expected, f"{left} instead of {right} at {shape}")
    return None


def _differ(actual: Answer, expected: Answer, detail: str) -> Difference:
    return Difference("rows differ", f"{detail}; {len(actual.rows)} rows, Spark {len(expected.rows)}"[:600])


def _by_shape(answer: Answer, unordered: Sequence[bool]) -> dict[Any, list[tuple[float, ...]]]:
    """Finite floating numbers by what else is in the row: they may differ a little, all else must be equal."""
    found: dict[Any, list[tuple[float, ...]]] = defaultdict(list)
    for row in answer.rows:
        numbers: list[float] = []
        shape = tuple(_shape(_sorted(cell) if loose else cell, numbers) for cell, loose in zip(row, unordered))
        found[shape].append(tuple(numbers))
    return found


def _sorted(cell: Any) -> Any:
    return sorted(cell, key=lambda v: (v is None, repr(v))) if isinstance(cell, list) else cell


def _shape(cell: Any, numbers: list[float]) -> Any:
    if isinstance(cell, bool) or cell is None:
        return cell
    if isinstance(cell, float) or (isinstance(cell, str) and FRACTION.match(cell)):
        number = float(cell)
        if math.isfinite(number):
            numbers.append(number + 0.0)
            return "number"
        return str(number)
    if isinstance(cell, dict):
        return ("map", *sorted(((k, _shape(v, numbers)) for k, v in cell.items()), key=repr))
    if isinstance(cell, list | tuple):
        return tuple(_shape(v, numbers) for v in cell)
    if isinstance(cell, bytearray):
        return bytes(cell)
    return cell
