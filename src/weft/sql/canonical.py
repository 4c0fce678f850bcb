"""Canonical text of expressions, from the user's tokens; expressions that differ for Spark stay different."""

from __future__ import annotations

import re
from functools import cache

from weft.sql.tokens import Token, Tokens, closing, is_call

_WORDS = """AND AS BETWEEN CASE DISTINCT DIV ELSE END ESCAPE FALSE FROM ILIKE IN INTERVAL IS LIKE NOT NULL OR REGEXP
RLIKE THEN TRUE WHEN WHERE"""
KEYWORDS = frozenset(_WORDS.split())
_ALSO_FUNCTIONS = frozenset({"LIKE", "ILIKE", "RLIKE", "REGEXP", "INTERVAL"})
_SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SAME = {"==": "=", "<>": "!=", "!>": "<=", "!<": ">=", "!": "NOT"}
_NAMES_ITS_FIELDS = frozenset({"struct", "arrays_zip"})


def canonical(tokens: Tokens, *, fold: bool = False) -> str:
    """Names in lower case, keywords in upper case, single spaces.

    A name after a dot keeps its case, because it may be the key of a map; with `fold`, for comparisons, it does not,
    and backquotes are removed too. Names in a struct keep their case: they become names of its fields.

    >>> from weft.sql.refuse import Source
    >>> from weft.sql.tokens import tokenize
    >>> canonical(tokenize(Source("Upper( `Sym` )  =='X' and Tags.Kind<>-1")))
    "upper(sym) = 'X' AND tags.Kind != -1"
    """
    keep = _makes_a_struct(tokens)
    parts: list[str] = []
    for i, token in enumerate(tokens):
        if i and _space_before(tokens, i):
            parts.append(" ")
        after_dot = i > 0 and tokens[i - 1].text in (".", ":")
        keep_this = keep or (after_dot and not fold)
        bare_name = fold and token.is_name and _SIMPLE.fullmatch(token.plain)
        parts.append(token.name if bare_name else _spell(token, keep_this, is_call(tokens, i)))
    return "".join(parts)


def _spell(token: Token, keep: bool, call: bool) -> str:
    if token.kind == "op":
        return _SAME.get(token.text, token.text)
    if token.kind == "word":
        if keep:
            return token.text
        return (
            token.upper if token.upper in KEYWORDS and not (call and token.upper not in ("IN", "NOT")) else token.name
        )
    if token.kind == "quoted":
        plain = token.plain if keep else token.name
        return f"`{plain.replace('`', '``')}`" if _needs_quotes(plain) else plain
    if token.kind == "string" and token.text[0] == '"' and not re.search(r"['\\]|\"\"", token.text[1:-1]):
        return f"'{token.text[1:-1]}'"
    return token.text.upper() if token.kind == "number" else token.text


def _needs_quotes(plain: str) -> bool:
    return not _SIMPLE.fullmatch(plain) or plain.upper() in _reserved()


@cache
def _reserved() -> frozenset[str]:
    """Loaded only if a name is in backquotes: importing sqlglot takes longer than parsing most texts."""
    from sqlglot.dialects.spark import Spark

    words = {word for keyword in Spark.Tokenizer.KEYWORDS for word in keyword.split()}
    return KEYWORDS | words | {"CURRENT_TIME", "LOCALTIMESTAMP", "SESSION_USER", "USER"}


def _makes_a_struct(tokens: Tokens) -> bool:
    for i, token in enumerate(tokens):
        if token.name in _NAMES_ITS_FIELDS and i + 1 < len(tokens) and tokens[i + 1].text in "(<":
            return True
        if token.text == "(" and not (i and (tokens[i - 1].is_name and _joins_paren(tokens[i - 1], tokens, i - 1))):
            if i and tokens[i - 1].upper in ("IN", "ANY", "SOME", "ALL"):
                continue
            inside, depth = tokens[i + 1 : closing(tokens, i)], 0
            for t in inside:
                depth += (t.text in ("(", "[")) - (t.text in (")", "]"))
                if t.text == "," and depth == 0:
                    return True
    return False


def _joins_paren(token: Token, tokens: Tokens, i: int) -> bool:
    """Whether a parenthesis after this name belongs to it, as in `f(x)` or `decimal(10, 2)`."""
    return token.upper not in KEYWORDS or (i > 0 and tokens[i - 1].text == ".")


def _space_before(tokens: Tokens, i: int) -> bool:
    before, token = tokens[i - 1], tokens[i]
    if token.kind == "op" and token.text in (",", ")", "]", "[", ".", "::", ":"):
        return False
    if before.kind == "op" and before.text in ("(", "[", ".", "::", ":"):
        return False
    if token.text == "(" and before.is_name:
        return not _joins_paren(before, tokens, i - 1)
    # No space after a sign, but `- -5` must not become a comment.
    return not (before.text in ("-", "+", "~") and _is_prefix(tokens, i - 1)) or token.text in ("-", "+")


def _is_prefix(tokens: Tokens, i: int) -> bool:
    if i == 0:
        return True
    before = tokens[i - 1]
    return before.upper in KEYWORDS - {"END", "NULL", "TRUE", "FALSE"} or (
        before.kind == "op" and before.text not in (")", "]")
    )


def bare(tokens: Tokens) -> Tokens:
    """Without enclosing parentheses."""
    while len(tokens) > 2 and tokens[0].text == "(" and closing(tokens, 0) == len(tokens) - 1:
        inside = tokens[1:-1]
        if _makes_a_struct(tokens) and not _makes_a_struct(inside):
            break
        tokens = inside
    return tokens
