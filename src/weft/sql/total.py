"""Which expressions have a value for every row, whatever it holds."""

from __future__ import annotations

from functools import lru_cache

from weft.sql.canonical import bare
from weft.sql.refuse import Source
from weft.sql.tokens import tokenize


@lru_cache(maxsize=4096)
def can_fail(expression: str) -> bool:
    """Whether Spark may raise while it evaluates the expression. Only columns, fields and plain literals cannot fail.

    >>> can_fail("price"), can_fail("`odd name`.field"), can_fail("'text'"), can_fail("1 / k"), can_fail("abs(k)")
    (False, False, False, True, True)
    """
    tokens = bare(tokenize(Source(expression)))
    if len(tokens) == 1 and tokens[0].kind in ("string", "number"):
        return False
    names, dots = tokens[::2], tokens[1::2]
    return not (all(token.is_name for token in names) and all(token.text == "." for token in dots))
