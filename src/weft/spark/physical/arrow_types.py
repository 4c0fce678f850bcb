"""The Arrow type of each Spark type, and the types that cannot leave Spark as they are."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructType, VariantType

WITHOUT_ARROW = (NullType, VariantType)
"""Types that Arrow has another type for, or files cannot hold."""


class NoArrowType(Exception):
    """A type whose values weft cannot keep or answer."""

    def __init__(self, data_type: DataType) -> None:
        self.is_void = isinstance(data_type, NullType)
        name = data_type.simpleString()
        super().__init__("NULL has no type here" if self.is_void else f"weft does not keep values of type {name}")


def arrow_type(data_type: DataType) -> pa.DataType:
    """For values that buckets keep: keys and answers.

    >>> from pyspark.sql.types import TimestampType
    >>> arrow_type(TimestampType())
    TimestampType(timestamp[us, tz=UTC])
    """
    unsupported = next((part for part in _parts(data_type) if isinstance(part, WITHOUT_ARROW)), None)
    try:
        if unsupported is None:
            return to_arrow_type(data_type, timezone="UTC")
    except PySparkException:
        unsupported = data_type
    raise NoArrowType(unsupported)


def has_map(data_type: DataType) -> bool:
    return any(isinstance(part, MapType) for part in _parts(data_type))


def _parts(data_type: DataType) -> Iterator[DataType]:
    yield data_type
    match data_type:
        case StructType():
            for field in data_type.fields:
                yield from _parts(field.dataType)
        case ArrayType():
            yield from _parts(data_type.elementType)
        case MapType():
            yield from _parts(data_type.keyType)
            yield from _parts(data_type.valueType)
