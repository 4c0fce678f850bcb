"""Replaces weft's own aggregates by Spark expressions of the same type, so that Spark can tell names and types."""

from __future__ import annotations

from weft.aggregates.aggregate import STAND_INS
from weft.sql.refuse import Source
from weft.sql.tokens import Tokens, closing, is_call, tokenize


def standing_in(text: str) -> str:
    """The text as Spark can analyse it.

    >>> standing_in("SELECT top_k_sum(page, bytes, 3) AS t, max(v) FROM s")
    "SELECT array(named_struct('item', any_value(page), 'sum', sum(bytes))) AS t, max(v) FROM s"
    """
    if not any(name in text.lower() for name in STAND_INS):
        return text
    tokens = tokenize(Source(text))
    for i in reversed(range(len(tokens))):
        if tokens[i].name in STAND_INS and is_call(tokens, i):
            end = closing(tokens, i + 1)
            arguments = (text[a[0].start : a[-1].end] for a in _arguments(tokens[i + 2 : end]))
            filtered = _filter(text, tokens, end)
            stands = STAND_INS[tokens[i].name].format(*arguments, filter=filtered)
            text = text[: tokens[i].start] + stands + text[tokens[end].end + len(filtered) :]
    return text


def _filter(text: str, tokens: Tokens, end: int) -> str:
    """`FILTER (WHERE ...)` after the closing bracket of a call, with the space before it."""
    if [t.upper for t in tokens[end + 1 : end + 3]] != ["FILTER", "("]:
        return ""
    return text[tokens[end].end : tokens[closing(tokens, end + 2)].end]


def _arguments(tokens: Tokens) -> list[Tokens]:
    """The tokens between top-level commas."""
    arguments, begin, depth = [], 0, 0
    for i, token in enumerate(tokens):
        depth += (token.text in "([" and token.kind == "op") - (token.text in ")]" and token.kind == "op")
        if token.text == "," and depth == 0:
            arguments.append(tokens[begin:i])
            begin = i + 1
    return [*arguments, tokens[begin:]]
