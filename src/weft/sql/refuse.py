"""Refusing a query: the place in its text, the reason, the way out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from weft.model import ACQ, SqlError


class Refused(SqlError):
    """A query that cannot be served. `line` and `column` count from 1 in the whole text that was given."""

    def __init__(self, line: int, column: int, reason: str, way_out: str, snippet: str) -> None:
        super().__init__(f"line {line}, column {column}: {reason}\n{snippet}\n{way_out}")
        self.line = line
        self.column = column
        self.reason = reason
        self.way_out = way_out
        self.snippet = snippet

    def __reduce__(self) -> tuple[type[Refused], tuple[int, int, str, str, str]]:
        return Refused, (self.line, self.column, self.reason, self.way_out, self.snippet)


@dataclass(frozen=True, slots=True)
class Source:
    """The text that positions refer to."""

    text: str

    def line_column(self, start: int) -> tuple[int, int]:
        """Line and column, from 1 on.

        >>> Source("one\\ntwo three").line_column(8)
        (2, 5)
        """
        return self.text.count("\n", 0, start) + 1, start - self.text.rfind("\n", 0, start)

    def line_columns(self, starts: Iterable[int]) -> Iterator[tuple[int, int]]:
        """The same for many positions in ascending order, in one pass over the text."""
        line, last = 1, 0
        for start in starts:
            line, last = line + self.text.count("\n", last, start), start
            yield line, start - self.text.rfind("\n", 0, start)

    def refuse(self, start: int, end: int, reason: str, way_out: str) -> Refused:
        """Point to `text[start:end]`; if it has several lines, to the first."""
        start = min(start, len(self.text))
        begin = self.text.rfind("\n", 0, start) + 1
        stop = self.text.find("\n", begin)
        shown = self.text[begin : len(self.text) if stop < 0 else stop].rstrip()
        column = start - begin
        # Tabs before the fragment are kept before the carets, so that these are aligned at any tab width.
        indent = "".join("\t" if c == "\t" else " " for c in shown[:column].ljust(column))
        carets = "^" * max(1, min(end - start, len(shown) - column))
        return Refused(
            *self.line_column(start),
            reason=reason,
            way_out=way_out,
            snippet=f"    {shown}\n    {indent}{carets}",
        )


def refuse(acq: ACQ, reason: str, way_out: str, fragment: str | None = None) -> Refused:
    """A refusal of a parsed query: points to `fragment` in its text, otherwise to its beginning."""
    source, start, end = Source(acq.text), 0, len(acq.text)
    if fragment and fragment.strip():
        # The fragment may come from canonical SQL, so case and spaces may differ from the user's text.
        pieces = re.findall(r"\w+|[^\w\s]", fragment)
        before, after = (r"\b" if re.fullmatch(r"\w+", piece) else "" for piece in (pieces[0], pieces[-1]))
        match = re.search(before + r"\s*".join(map(re.escape, pieces)) + after, acq.text, re.IGNORECASE)
        if match:
            start, end = match.span()
    refused = source.refuse(start, end, reason, way_out)
    line, column = acq.begins
    above = column - 1 if refused.line == 1 else 0
    return Refused(refused.line + line - 1, refused.column + above, reason, way_out, refused.snippet)
