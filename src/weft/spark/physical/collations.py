"""Texts with a collation: Spark compares them in the filters, and weft compares texts byte by byte only.

Under another collation than UTF8_BINARY different texts are equal, or in another order. Groups would not meet when
slices are combined, and Arrow does not carry the collation to the type of an answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyspark.sql.types import StructType

from weft.model import ACQ
from weft.sql import refuse

COUNTING = frozenset({"count", "count_if"})
"""Aggregates that compare no values."""

_COLLATED = re.compile(r"\bstring collate (\w+)", re.IGNORECASE)
_WAY_OUT = (
    "Write text COLLATE UTF8_BINARY, which is compared byte by byte, or lower(text COLLATE UTF8_BINARY) where case "
    "does not matter."
)


def refuse_collated_values(acq: ACQ, types: Mapping[str, str]) -> None:
    """Refuse keys and arguments that would be compared; `types` are the Spark types of both."""
    compared = [(key, "groups by") for key in acq.keys]
    compared += [(a, f"keeps for {c.function}") for c in acq.calls if c.function not in COUNTING for a in c.arguments]
    for expression, use in compared:
        if collation := _COLLATED.search(types.get(expression, "")):
            raise refuse(
                acq,
                f"{expression}, which this query {use}, has the collation {collation[1]}; weft compares text by bytes",
                _WAY_OUT,
                fragment=expression,
            )


def refuse_collated_answers(acq: ACQ, schema: StructType) -> None:
    """Refuse what is computed after the aggregates."""
    for field in schema:
        if collation := _COLLATED.search(field.dataType.simpleString()):
            raise refuse(
                acq, f"the answer's column {field.name} has the collation {collation[1]}, which weft does not keep",
                _WAY_OUT, fragment=field.name,
            )  # fmt: skip
