"""Spark types as SQL writes them. PySpark's own text leaves out the backquotes of fields that need them."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StructType


def sql_type(data_type: DataType) -> str:
    """
    >>> from pyspark.sql.types import LongType
    >>> sql_type(StructType().add("a b", LongType()).add("c", ArrayType(StructType().add("d", LongType()))))
    'struct<`a b`:bigint,`c`:array<struct<`d`:bigint>>>'
    """
    match data_type:
        case StructType():
            fields = (f"{quoted(f.name)}:{sql_type(f.dataType)}" for f in data_type.fields)
            return f"struct<{','.join(fields)}>"
        case ArrayType():
            return f"array<{sql_type(data_type.elementType)}>"
        case MapType():
            return f"map<{sql_type(data_type.keyType)},{sql_type(data_type.valueType)}>"
    return str(data_type.simpleString())


def column_types(frame: DataFrame) -> dict[str, str]:
    """The type of each column, by name."""
    return {field.name: sql_type(field.dataType) for field in frame.schema.fields}


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
