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

    def place(self, start: int) -> tuple[int, int]:
        """Line and column, from 1 on.

        >>> Source("one\\ntwo three").place(8)
        (2, 5)
        """
        return self.text.count("\n", 0, start) + 1, start - self.text.rfind("\n", 0, start)

    def places(self, starts: Iterable[int]) -> Iterator[tuple[int, int]]:
        """The same for many, in ascending order: the text is gone through once."""
        line, last = 1, 0
        for start in starts:
            line, last = line + self.text.count("\n", last, start), start
            yield line, start - self.text.rfind("\n", 0, start)

    def refuse(self, start: int, end: int, reason: str, way_out: str) -> Refused:
        """Point to `text[start:end]`; of a fragment over several lines, to its first line."""
        start = min(start, len(self.text))
        begin = self.text.rfind("\n", 0, start) + 1
        stop = self.text.find("\n", begin)
        shown = self.text[begin : len(self.text) if stop < 0 else stop].rstrip()
        column = start - begin
        # A tab before the fragment is a tab before the carets, so that they stand under it at any tab width.
        indent = "".join("\t" if c == "\t" else " " for c in shown[:column].ljust(column))
        carets = "^" * max(1, min(end - start, len(shown) - column))
        return Refused(
            *self.place(start),
            reason=reason,
            way_out=way_out,
            snippet=f"    {shown}\n    {indent}{carets}",
        )


def refuse(acq: ACQ, reason: str, way_out: str, fragment: str | None = None) -> Refused:
    """A refusal of a query that was parsed already: points to `fragment` in its text, else to where it begins."""
    source, start, end = Source(acq.text), 0, len(acq.text)
    if fragment and fragment.strip():
        # The fragment may come from canonical SQL, so neither its case nor its spaces need be the user's.
        pieces = re.findall(r"\w+|[^\w\s]", fragment)
        match = re.search(r"\s*".join(map(re.escape, pieces)), acq.text, re.IGNORECASE)
        if match:
            start, end = match.span()
    refused = source.refuse(start, end, reason, way_out)
    line, column = acq.begins
    above = column - 1 if refused.line == 1 else 0
    return Refused(refused.line + line - 1, refused.column + above, reason, way_out, refused.snippet)
