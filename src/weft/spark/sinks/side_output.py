"""A sink for rows that are in no answer: those that came too late, and records that could not be read."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from weft.model import WeftError
from weft.spark.files import FileStore

SideOutput = Callable[[int, DataFrame], object]
"""Called with a batch's number and the rows; again with the same ones where the batch is repeated."""


def make_aside_sink(spec: str | SideOutput, what: str, refused: type[WeftError]) -> SideOutput:
    """`parquet:folder`, a folder a batch in it, or a function of the batch's number and a DataFrame."""
    if callable(spec):
        return spec
    kind, _, folder = spec.partition(":")
    if kind != "parquet" or not folder:
        raise refused(f"unknown sink for {what} {spec!r}; use parquet:FOLDER, or a function(batch, frame)")

    def write(batch: int, rows: DataFrame) -> None:
        rows.write.mode("overwrite").parquet(f"{folder}/weft_batch={batch}")
        if "://" not in folder:
            FileStore(folder).sync()  # Spark makes nothing durable, and a batch that counts is not repeated

    return write
