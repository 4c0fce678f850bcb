"""The syntax tree of an expression, whose nodes know their tokens, and the cursor that the grammar reads with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.sql.tokens import Token, Tokens, closing


@dataclass(frozen=True, slots=True)
class Node:
    """`kind` is literal, column, call, op, paren, cast, case, field, star or opaque; `name` says which.

    A call's `filter` is its FILTER condition, `within` the ORDER BY of WITHIN GROUP, `nulls` IGNORE or RESPECT. A
    column's path is its tokens without dots.
    """

    kind: str
    tokens: Tokens
    name: str = ""
    args: tuple[Node, ...] = ()
    distinct: bool = False
    nulls: str = ""
    filter: Tokens = ()
    within: Tokens = ()

    @property
    def start(self) -> int:
        return self.tokens[0].start

    @property
    def end(self) -> int:
        return self.tokens[-1].end

    @property
    def path(self) -> tuple[Token, ...]:
        return tuple(t for t in self.tokens if t.is_name)

    def walk(self) -> Iterator[Node]:
        yield self
        for arg in self.args:
            yield from arg.walk()


class Unreadable(Exception):
    """Not an expression: `token` is where reading stopped, None at the end."""

    def __init__(self, token: Token | None) -> None:
        super().__init__()
        self.token = token


class TokenCursor:
    """A position in tokens: looks ahead, takes keywords, and raises `Unreadable` where one is missing."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        i = self.at + ahead
        return self.tokens[i].upper if i < len(self.tokens) else ""

    def token(self) -> Token:
        if self.at >= len(self.tokens):
            raise Unreadable(None)
        return self.tokens[self.at]

    def take(self, *keywords: str) -> bool:
        if all(self.peek(i) == k for i, k in enumerate(keywords)):
            self.at += len(keywords)
            return True
        return False

    def need(self, keyword: str) -> None:
        if not self.take(keyword):
            raise Unreadable(self.token())

    def since(self, begin: int) -> Tokens:
        return self.tokens[begin : self.at]

    def brackets(self, *keywords: str) -> Tokens:
        """The tokens in the brackets that follow these keywords; none if the keywords are not here."""
        if not self.take(*keywords, "("):
            return ()
        inside = self.at
        self.at = closing(self.tokens, inside - 1) + 1
        return self.tokens[inside : self.at - 1]
