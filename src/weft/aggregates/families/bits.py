"""Integers combined bit by bit."""

from __future__ import annotations

from weft.aggregates.aggregate import Aggregate, Spelling, one
from weft.aggregates.combining import Bitwise
from weft.aggregates.kind import Kind, TableOperation, TableSlot
from weft.aggregates.lowering import Value


def _bits(name: str, identity: int, operation: TableOperation) -> Kind:
    lift = (f"{name}({{0}})",)
    return Kind(name, lift, Bitwise(name, identity), merge=lift, table=TableSlot(operation))


KINDS = (
    _bits("bit_and", -1, TableOperation.ALL_BITS),
    _bits("bit_or", 0, TableOperation.ANY_BIT),
    _bits("bit_xor", 0, TableOperation.ODD_BITS),
)

AGGREGATES = {
    "bit_and": Aggregate(one("bit_and"), Value(), spelling=Spelling(repeats=False)),
    "bit_or": Aggregate(one("bit_or"), Value(), spelling=Spelling(repeats=False)),
    "bit_xor": Aggregate(one("bit_xor"), Value()),
}
