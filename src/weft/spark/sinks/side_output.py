"""Side outputs: where rows go that are in no answer, late rows and records that could not be read."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from weft.model import WeftError
from weft.spark.files import FileStore

SideOutput = Callable[[int, DataFrame], object]
"""Called with a batch's number and the rows; again with the same ones if the batch is repeated."""


def make_side_output(spec: str | SideOutput, what: str, refused: type[WeftError]) -> SideOutput:
    """`parquet:folder`, with a folder per batch in it, or a function of the batch's number and a DataFrame."""
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
