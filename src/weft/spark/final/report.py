"""What travels from executors to the driver."""

from __future__ import annotations

import pyarrow as pa


def decoded(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table in its query's own types: dictionaries are an economy of the way, not of the answer."""
    return table.cast(schema)


def serialise(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def deserialise(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()
