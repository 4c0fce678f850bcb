"""Queries that differ only in their names and in the lengths of their windows have one shape, which is parsed once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from weft.model import ACQ
from weft.sql.statements import Statement
from weft.sql.syntax import read
from weft.sql.tokens import Tokens, closing, is_call
from weft.sql.window import read_window


@dataclass(slots=True)
class Shapes:
    """The queries of one text, by shape. Refused queries are not kept, so that each refusal has its own place."""

    by_words: dict[tuple[str, ...], ACQ] = field(default_factory=dict)

    def find(self, statement: Statement, name: str) -> ACQ | None:
        """The query, if one of the same shape was parsed before."""
        cut = _cut(statement.select)
        like = self.by_words.get(cut[0]) if cut else None
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
            self.by_words[cut[0]] = acq


def _cut(tokens: Tokens) -> tuple[tuple[str, ...], Tokens] | None:
    """The words without the lengths in the only call of window(), and that call. CQL windows are not cached."""
    words = [t.text for t in tokens]
    calls = [i for i, word in enumerate(words) if word.lower() == "window" and is_call(tokens, i)]
    if len(calls) != 1 or "[" in words:
        return None
    begin, end, depth = calls[0], closing(tokens, calls[0] + 1) + 1, 0
    if end > len(tokens):
        return None  # it is never closed, which the parser says better
    lengths = False  # the time column, before the first comma, is part of the shape
    for i in range(begin + 1, end):
        depth += (words[i] == "(") - (words[i] == ")")
        lengths = lengths or (words[i] == "," and depth == 1)
        if lengths and tokens[i].kind in ("string", "number"):
            words[i] = "?"
    return tuple(words), tokens[begin:end]
