"""Splits a text into statements, and a statement into its name and its SELECT."""

from __future__ import annotations

from dataclasses import dataclass

from weft.model import Ttl
from weft.sql.refuse import Source
from weft.sql.tokens import Token, Tokens, tokenize
from weft.sql.ttl import split_ttl


@dataclass(frozen=True, slots=True)
class Statement:
    """`tokens` are all tokens of the statement, `select` those from SELECT on, `named` those of its name, if any."""

    source: Source
    position: int
    tokens: Tokens
    select: Tokens
    named: Tokens
    ttl: Ttl | None = None

    @property
    def name(self) -> str:
        return ".".join(t.plain for t in self.named if t.is_name) or f"q{self.position}"

    @property
    def text(self) -> str:
        return self.source.text[self.tokens[0].start : self.tokens[-1].end]


def statements(source: Source) -> list[Statement]:
    groups: list[list[Token]] = [[]]
    for token in tokenize(source):
        if token.text == ";":
            groups.append([])
        else:
            groups[-1].append(token)
    read = [_statement(source, i, tokens) for i, tokens in enumerate((g for g in groups if g), start=1)]
    if not read:
        raise source.refuse(
            0, 1, "there is no query here.", "Write a query, such as SELECT count(*) FROM trades [RANGE 1 HOUR]."
        )
    return read


def _statement(source: Source, position: int, tokens: Tokens) -> Statement:
    at, named = 0, tokens[:0]
    words = [t.upper for t in tokens]
    if words[0] == "CREATE":
        at = 1 + 2 * (words[1:3] == ["OR", "REPLACE"])
        at += words[at : at + 1] == ["GLOBAL"]
        at += words[at : at + 1] in (["TEMP"], ["TEMPORARY"])
        if words[at : at + 1] != ["VIEW"]:
            raise _not_a_query(source, tokens)
        at += 1 + 3 * (words[at + 1 : at + 4] == ["IF", "NOT", "EXISTS"])
        begin = at
        while at < len(tokens) and (tokens[at].is_name or tokens[at].text == ".") and words[at] != "AS":
            at += 1
        named = tokens[begin:at]
        if not named or at == len(tokens):
            raise _not_a_query(source, tokens)
        if words[at] != "AS":
            raise source.refuse(
                tokens[at].start, tokens[at].end,
                "a view's columns, comments and properties are not supported here.",
                "Write CREATE VIEW name AS SELECT ..., with AS after each column that needs another name.",
            )  # fmt: skip
        at += 1
    select = tokens[at:]
    if not select or select[0].upper != "SELECT":
        raise _not_a_query(source, tokens, select[0] if select else None)
    select, ttl = split_ttl(source, select)
    return Statement(source, position, tokens, select, named, ttl)


def _not_a_query(source: Source, tokens: Tokens, at: Token | None = None) -> Exception:
    at = at or tokens[0]
    if at.upper == "WITH":
        reason = "WITH names a query inside the query, and weft serves one SELECT over one stream."
        return source.refuse(at.start, at.end, reason, "Put its filter and expressions into the SELECT itself.")
    if at.text == "(":
        reason = "a query in parentheses is a subquery, and weft serves one SELECT over one stream."
        return source.refuse(at.start, at.end, reason, "Leave the parentheses out.")
    reason = f"{at.text} does not begin a query that weft can serve."
    return source.refuse(at.start, at.end, reason, "Write SELECT ..., or CREATE VIEW name AS SELECT ....")
