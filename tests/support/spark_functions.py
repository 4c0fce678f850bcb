"""All scalar functions that Spark has registered, with the arguments that their documentation shows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

NOT_SCALAR = {"agg_funcs", "generator_funcs", "window_funcs", "table_funcs", "avro_funcs", "protobuf_funcs"}
"""Groups of Spark's registry; the last two need packages of their own."""

NOT_DETERMINED = {
    "aes_encrypt", "assert_true", "case", "cast", "curdate", "current_catalog", "current_database", "current_date",
    "current_path", "current_schema", "current_time", "current_timestamp", "current_timezone", "current_user",
    "grouping", "grouping_id", "input_file_block_length", "input_file_block_start", "input_file_name", "java_method",
    "json_tuple", "localtime", "localtimestamp", "measure", "monotonically_increasing_id", "now", "raise_error", "rand",
    "randn", "random", "randstr", "reflect", "schema_of_variant_agg", "session_user", "session_window", "shuffle",
    "spark_partition_id", "struct", "time_bucket", "try_reflect", "uniform", "unix_timestamp", "user", "uuid",
    "variant_explode", "variant_explode_outer", "vector_avg", "vector_sum", "version", "when", "window", "window_time",
}  # fmt: skip
"""Random, of the clock, of the machine, with an effect, or no plain function of a row."""

UNBOUNDED = {"sequence", "repeat", "space", "lpad", "rpad", "array_repeat", "array_insert", "format_string", "printf"}
"""Their result is as long as a number says, so their numbers stay those of the documentation."""

EXAMPLE = re.compile(r"^\s*> SELECT (?P<expression>.*?);\s*$", re.MULTILINE)

LITERAL = re.compile(
    r"""(?P<date>\bdate\s*'[^']*')|(?P<timestamp>\btimestamp(_ltz)?\s*'[^']*')|(?P<binary>\bx'[0-9a-f]*')
    |(?P<keep>\b(timestamp_ntz|time|interval)\s*'[^']*'|\binterval\s+\d+\s+\w+|"[^"]*"|`[^`]*`|->\s*[^,)]*|\bas\b.*?[,)])
    |(?P<string>'(?:[^'\\]|\\.)*')|(?P<fraction>(?<![\w.'])\d+\.\d+)|(?P<integer>(?<![\w.'])\d+\b(?!['.]))""",
    re.VERBOSE | re.IGNORECASE,
)
"""Literals of an example by kind. What is kept is a part of the syntax."""


@dataclass(frozen=True)
class Piece:
    """A part of an example: text, or a literal of a kind which an expression of its type can stand for."""

    text: str
    kind: str | None = None


class SparkFunctions:
    """Spark's functions by name. The documentation of a function is read when it is first drawn."""

    def __init__(self, spark: Any) -> None:
        self._catalog = spark._jsparkSession.sessionState().catalog()
        self._identifier = spark._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
        names = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
        self.names = tuple(sorted(name for name in names - NOT_DETERMINED if name.isidentifier()))
        self._examples: dict[str, tuple[tuple[Piece, ...], ...] | None] = {}

    def examples(self, name: str) -> tuple[tuple[Piece, ...], ...] | None:
        """Calls as the documentation shows them; None if the function is no function of a row."""
        if name not in self._examples:
            info = self._catalog.lookupFunctionInfo(self._identifier(name))
            texts = [m["expression"].replace("_FUNC_", name) for m in EXAMPLE.finditer(info.getExamples() or "")]
            calls = tuple(pieces(t, name in UNBOUNDED) for t in texts if usable(t))
            self._examples[name] = None if info.getGroup() in NOT_SCALAR else calls
        return self._examples[name]


def usable(text: str) -> bool:
    return " FROM " not in text.upper() or "EXTRACT" in text.upper() or "TRIM" in text.upper()


def pieces(text: str, keep_numbers: bool) -> tuple[Piece, ...]:
    """
    >>> [p.text for p in pieces("left('Spark', 3)", False) if p.kind]
    ["'Spark'", '3']
    """
    found, end = [], 0
    for match in LITERAL.finditer(text):
        kind = match.lastgroup if match["keep"] is None else None
        if kind is None or (keep_numbers and kind in ("integer", "fraction")):
            continue
        found += [Piece(text[end : match.start()]), Piece(match[0], kind)]
        end = match.end()
    return (*found, Piece(text[end:]))
