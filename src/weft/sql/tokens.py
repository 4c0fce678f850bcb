"""Spark SQL text as tokens with positions.

weft keeps the user's own text of filters, keys and arguments, so it needs the position of every token, and exactly
Spark's rules for tokens: `0x1F` and `1a` are names, comments nest, `'a''b'` is one string.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from weft.sql.refuse import Source

Kind = Literal["word", "quoted", "string", "number", "op"]

_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:BD|[LSYDF])?(?!\w)"
_PATTERN = re.compile(
    rf"""
      (?P<space>\s+|--(?:\\\n|[^\r\n])*)
    | (?P<comment>/\*)
    | (?P<string>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    | (?P<quoted>`(?:[^`]|``)+`)
    | (?P<number>{_NUMBER})
    | (?P<word>[A-Za-z0-9_]+)
    | (?P<op><=>|>>>|<<|>>|<=|>=|<>|!=|==|!>|!<|\|\||\|>|::|->|=>|[-+*/%&|^~!=<>()\[\],.;:?@{{}}])
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


class Token(NamedTuple):
    kind: Kind
    text: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        """The token as a keyword or operator; empty for other tokens."""
        if self.kind == "word":
            return self.text.upper()
        return self.text if self.kind == "op" else ""

    @property
    def is_name(self) -> bool:
        return self.kind in ("word", "quoted")

    @property
    def plain(self) -> str:
        """A name without its backquotes, in the user's case."""
        return self.text[1:-1].replace("``", "`") if self.kind == "quoted" else self.text

    @property
    def name(self) -> str:
        """A name as Spark compares it: without backquotes, in lower case."""
        return self.plain.lower()


Tokens = Sequence[Token]


def tokenize(source: Source) -> list[Token]:
    """The tokens of a text, without comments."""
    text, at, tokens = source.text, 0, []
    while at < len(text):
        match = _PATTERN.match(text, at)
        if match is None:
            raise _unreadable(source, at)
        kind, end = match.lastgroup, match.end()
        if kind == "comment":
            end = _comment_end(source, at)
        elif kind != "space":
            tokens.append(Token(kind, match.group(), at, end))  # type: ignore[arg-type]
        at = end
    return tokens


def _comment_end(source: Source, start: int) -> int:
    depth = 0
    for mark in re.compile(r"/\*|\*/").finditer(source.text, start):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    raise source.refuse(start, start + 2, "this comment is never closed.", "Close it with */.")


def _unreadable(source: Source, at: int) -> Exception:
    char = source.text[at]
    if char in "'\"`":
        what = "name" if char == "`" else "string"
        return source.refuse(at, at + 1, f"this {what} is never closed.", f"Close it with {char}.")
    return source.refuse(
        at, at + 1, f"{char} is no part of Spark SQL.", "Remove it, or put the name it belongs to in backquotes."
    )


def closing(tokens: Tokens, opening: int) -> int:
    """The index of the bracket that closes `tokens[opening]`, or `len(tokens)` if none does."""
    depth = 0
    for i in range(opening, len(tokens)):
        if tokens[i].kind == "op":
            depth += (tokens[i].text in "([") - (tokens[i].text in ")]")
            if depth == 0:
                return i
    return len(tokens)


def is_call(tokens: Tokens, i: int) -> bool:
    """Whether `tokens[i]` names a function that is called here, without a schema before it."""
    return (
        tokens[i].is_name
        and i + 1 < len(tokens)
        and tokens[i + 1].text == "("
        and not (i and tokens[i - 1].text == ".")
        # x LIKE ANY ('a%', 'b%') is a predicate; any(x) is an aggregate.
        and not (i and tokens[i - 1].upper in ("LIKE", "ILIKE") and tokens[i].name in ("any", "some", "all"))
    )
