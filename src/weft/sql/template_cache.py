"""Queries that differ only in their names and in the lengths of their windows have one shape, and are read once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from weft.model import ACQ
from weft.sql.statements import Statement
from weft.sql.syntax import read
from weft.sql.tokens import Tokens, closing, is_call
from weft.sql.window import read_window


@dataclass(slots=True)
class Shapes:
    """What was read of one text. Only what could be served is kept, so every refusal is made at its own place."""

    known: dict[tuple[str, ...], ACQ] = field(default_factory=dict)

    def find(self, statement: Statement, name: str) -> ACQ | None:
        """The query, if one of the same shape was read before."""
        cut = _cut(statement.select)
        like = self.known.get(cut[0]) if cut else None
        if cut is None or like is None:
            return None
        windowing = read_window(statement.source, read(cut[1]))
        return replace(
            like,
            name=name,
            window=windowing.window,
            text=statement.text,
            spark_sql=statement.source.text[statement.select[0].start : statement.select[-1].end],
            ttl=statement.ttl,
        )

    def keep(self, statement: Statement, acq: ACQ) -> None:
        cut = _cut(statement.select)
        if cut:
            self.known[cut[0]] = acq


def _cut(tokens: Tokens) -> tuple[tuple[str, ...], Tokens] | None:
    """The words without the lengths in the one call of window(), and that call. CQL's windows are parsed each time."""
    words = [t.text for t in tokens]
    calls = [i for i, word in enumerate(words) if word.lower() == "window" and is_call(tokens, i)]
    if len(calls) != 1 or "[" in words:
        return None
    begin, end, depth = calls[0], closing(tokens, calls[0] + 1) + 1, 0
    lengths = False  # what stands before the first comma is the time, and stays
    for i in range(begin + 1, end):
        depth += (words[i] == "(") - (words[i] == ")")
        lengths = lengths or (words[i] == "," and depth == 1)
        if lengths and tokens[i].kind in ("string", "number"):
            words[i] = "?"
    return tuple(words), tokens[begin:end]
