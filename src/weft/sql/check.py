"""A syntax check of the whole statement: sqlglot finds what is not SQL before weft interprets it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from weft.sql.clauses import cql_bracket
from weft.sql.fast_path import is_plain
from weft.sql.refuse import Source
from weft.sql.tokens import Tokens

if TYPE_CHECKING:
    from sqlglot.errors import ParseError

_FOREIGN = {">>>": ">> ", "!>": "<=", "!<": ">="}
"""Operators of Spark that sqlglot does not know, and known ones of the same length and precedence."""


def check_syntax(source: Source, tokens: Tokens) -> None:
    """Refuse what is not SQL, where parsing stopped. CQL's brackets become spaces, so that positions stay the same."""
    if is_plain(source, tokens):
        return
    begin = tokens[0].start
    text = list(source.text[begin : tokens[-1].end])
    has_struct_type = any(t.upper == "STRUCT" and tokens[i + 1].text == "<" for i, t in enumerate(tokens[:-1]))
    for i, token in enumerate(tokens[:-1]):
        operand = tokens[i + 1].is_name or tokens[i + 1].kind == "number" or tokens[i + 1].text in "(-+"
        if token.text in _FOREIGN and token.kind == "op" and operand:  # array<array<array<int>>> ends with no operator
            text[token.start - begin : token.end - begin] = _FOREIGN[token.text]
        elif token.text == ":" and i and tokens[i - 1].is_name and not has_struct_type:
            text[token.start - begin] = "."  # a path into a variant; sqlglot parses only one step of it
        elif token.upper == "WINDOW" and not tokens[i + 1].is_name:
            # As the first key, sqlglot would parse it as the WINDOW clause.
            text[token.start - begin : token.end - begin] = "windo_"
    bracket = cql_bracket(tokens)
    if bracket:
        if bracket[1] == len(tokens):
            at = tokens[bracket[0]]
            raise source.refuse(at.start, at.end, "this bracket is never closed.", "Close it with ].")
        for i in range(tokens[bracket[0]].start - begin, tokens[bracket[1]].end - begin):
            text[i] = "\n" if text[i] == "\n" else " "
    if _reads(re.sub(r"\d+", "0", "".join(text))):
        return
    import sqlglot
    from sqlglot.errors import ParseError, TokenError

    try:
        sqlglot.parse("".join(text), dialect="spark")
    except ParseError as error:
        if _is_about_arguments(str(error.errors[0]["description"])):
            return
        raise _refusal(source, begin, "".join(text), error) from None
    except TokenError as error:
        reason = "this cannot be read as Spark SQL."
        raise source.refuse(begin, tokens[0].end, reason, f"Look for what is never closed: {error}.") from None


@lru_cache(maxsize=10_000)
def _reads(text: str) -> bool:
    """Whether sqlglot accepts it. Queries that differ only in their numbers are checked once."""
    import sqlglot
    from sqlglot.errors import ParseError, TokenError

    try:
        sqlglot.parse(text, dialect="spark")
    except (ParseError, TokenError):
        return False
    return True


def _is_about_arguments(message: str) -> bool:
    """Whether sqlglot complains about the number of arguments, which Spark checks itself."""
    from sqlglot import exp

    missing = re.search(r"missing for <class '.*\.(\w+)'>", message)
    node = getattr(exp, missing.group(1), None) if missing else None
    return message.startswith("The number of provided arguments") or (node is not None and issubclass(node, exp.Func))


def _refusal(source: Source, begin: int, text: str, error: ParseError) -> Exception:
    first_error = error.errors[0]
    # sqlglot gives the line, and the column of the last character of the token that it stopped at.
    lines = text.split("\n")
    line = first_error["line"] or 1
    end = begin + sum(len(t) + 1 for t in lines[: line - 1]) + (first_error["col"] or 1)
    start = max(begin, end - len(first_error["highlight"] or ""))
    mark, description = source.text[start:end], str(first_error["description"])
    if description.startswith("Required keyword"):
        reason = f"an expression is missing at {mark}."
    elif description.startswith("Expected table name"):
        reason = "a table's name is missing here."
    elif description.startswith("Invalid expression"):
        reason = f"{mark} is not expected here."
    else:
        reason = f"{re.sub(r'<[^>]*>', '', description).strip().rstrip('.')}."
        reason = reason[0].lower() + reason[1:]
    return source.refuse(start, end, reason, "Write it as Spark SQL.")
