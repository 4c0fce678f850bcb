"""What a setting of the session concerns: fragments of a query that it changes, found by text or by types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from weft.engine.project import Typed
from weft.engine.project.literals import parse_literal
from weft.engine.project.types import TypeKind, kind
from weft.model import ACQ
from weft.spark.physical.time_zone import same_offset_always, session_zone
from weft.sql.refuse import Source
from weft.sql.tokens import Token, tokenize

DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class BoundTypes:
    """What a query computes after the aggregates, and the Spark types of event time, keys, arguments and answers."""

    roots: tuple[Typed, ...]
    types: tuple[str, ...]

    @property
    def nodes(self) -> Iterator[Typed]:
        stack = list(self.roots)
        while stack:
            node = stack.pop()
            yield node
            stack += node.args


def nowhere(*_: object) -> None:
    return None


def _constants(acq: ACQ) -> Iterator[str]:
    """The literals that weft reads itself: those of SELECT and HAVING, outside of aggregates."""
    roots = [output.expression for output in acq.outputs] + ([acq.having] if acq.having else [])
    return (str(node.value) for root in roots for node in root.walk() if node.op == "literal")


def constant_with(pattern: str) -> Callable[[ACQ, StructType], str | None]:
    search = re.compile(pattern, re.DOTALL).search
    return lambda acq, schema: next(filter(search, _constants(acq)), None)


def token(wanted: Callable[[Token], bool]) -> Callable[[ACQ, StructType], str | None]:
    return lambda acq, schema: next((t.text for t in tokenize(Source(acq.text)) if wanted(t)), None)


def calls(*functions: str) -> Callable[[ACQ, StructType], str | None]:
    return lambda acq, schema: next((c.function for c in acq.calls if c.function in functions), None)


def every_query(acq: ACQ, schema: StructType) -> str | None:
    return acq.name


def char_or_varchar(acq: ACQ, schema: StructType) -> str | None:
    limited = re.search(r"\b(?:var)?char\(\d+\)", schema.simpleString())
    return limited[0] if limited else token(lambda t: t.upper in ("CHAR", "CHARACTER", "VARCHAR"))(acq, schema)


def position_in_group_by(acq: ACQ, schema: StructType) -> str | None:
    """A number that stands alone between the commas of GROUP BY."""
    tokens = tokenize(Source(acq.text))
    words = [token.upper for token in tokens]
    begins = [i + 2 for i in range(len(words) - 1) if words[i : i + 2] == ["GROUP", "BY"]]
    depth = 0
    for i in range(begins[-1] if begins else len(tokens), len(tokens)):
        depth += (words[i] in ("(", "[")) - (words[i] in (")", "]"))
        alone = tokens[i - 1].upper in ("BY", ",") and (
            i + 1 == len(tokens) or tokens[i + 1].text not in "+-*/%|&^<>=."
        )
        if depth == 0 and tokens[i].kind == "number" and alone:
            return tokens[i].text
    return None


def same_but_for_case(acq: ACQ, schema: StructType) -> str | None:
    return next(_twins(schema), None)


def _twins(data_type: DataType) -> Iterator[str]:
    """Columns, or fields of one struct, whose names differ in case only."""
    if isinstance(data_type, StructType):
        spellings: dict[str, str] = {}
        for field in data_type:
            other = spellings.setdefault(field.name.lower(), field.name)
            if other != field.name:
                yield f"{other} and {field.name}"
            yield from _twins(field.dataType)
    elif isinstance(data_type, ArrayType):
        yield from _twins(data_type.elementType)
    elif isinstance(data_type, MapType):
        yield from _twins(data_type.keyType)
        yield from _twins(data_type.valueType)


def reads_the_clock(bound: BoundTypes, value: str) -> str | None:
    """Where an instant becomes text, a date or a local time; in zones that change their offset, also days."""
    zone = session_zone(value)
    if zone is None:
        return next((n.sql for n in bound.nodes if _is_local(n) or _counts_local_time(n) or _is_instant(n)), None)
    exact = same_offset_always(zone)
    return next((n.sql for n in bound.nodes if _is_local(n) or (not exact and _counts_local_time(n))), None)


def _is_instant(node: Typed) -> bool:
    return node.op == "literal" and kind(node.type) is TypeKind.TIMESTAMP


def _is_local(node: Typed) -> bool:
    kinds = {kind(t) for t in (node.type, *(arg.type for arg in node.args))}
    return TypeKind.TIMESTAMP in kinds and not kinds.isdisjoint({TypeKind.STRING, TypeKind.DATE, TypeKind.NTZ})


def _counts_local_time(node: Typed) -> bool:
    """A difference of timestamps, which Spark takes between local times, or days that are added to one."""
    kinds = [kind(arg.type) for arg in node.args]
    if node.op not in ("add", "sub") or TypeKind.TIMESTAMP not in kinds:
        return False
    spans = [arg for arg in node.args if kind(arg.type) is TypeKind.DURATION]
    return not spans or not all(map(_under_a_day, spans))


def _under_a_day(node: Typed) -> bool:
    if node.op != "literal":
        return False
    span = parse_literal(node.value, node.type).cast(pa.int64()).as_py()
    return span is None or abs(span) < DAY


def with_type(pattern: str) -> Callable[[BoundTypes, str], str | None]:
    search = re.compile(pattern).search
    return lambda bound, value: next(filter(search, bound.types), None)


def computes_with_decimals(bound: BoundTypes, value: str) -> str | None:
    """Where operands of different types get a common decimal type."""

    def mixed(node: Typed) -> bool:
        types = {arg.type for arg in node.args}
        return len(types) > 1 and any(kind(t) is TypeKind.DECIMAL for t in types)

    return next((node.sql for node in bound.nodes if mixed(node)), None)


def compares_times_with_text(bound: BoundTypes, value: str) -> str | None:
    times = (TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.NTZ)

    def compares(node: Typed) -> bool:
        texts = [a for a in node.args if a.op == "literal" and a.sql.lstrip("( ")[:1] in ("'", '"')]
        return bool(texts) and any(kind(a.type) in times for a in node.args)

    return next((node.sql for node in bound.nodes if compares(node)), None)
