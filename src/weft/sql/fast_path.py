"""Plain statements that weft's own grammar covers entirely: they need no check by sqlglot, which is then not loaded."""

from __future__ import annotations

from weft.aggregates import AGGREGATES
from weft.sql.clauses import clauses
from weft.sql.functions import aggregate_named
from weft.sql.refuse import Refused, Source
from weft.sql.syntax import read, read_item
from weft.sql.syntax_tree import Node, Unreadable
from weft.sql.tokens import Token, Tokens, closing

_WORDS = """ALL ALTER ANALYZE AND ANTI ANY ARRAY AS ASC AT AUTHORIZATION BETWEEN BOTH BY CASE CAST CHECK CLUSTER COLLATE
COLUMN CONSTRAINT CREATE CROSS CUBE CURRENT CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DELETE
DESC DESCRIBE DISTINCT DISTRIBUTE DIV DROP ELSE END ESCAPE EXCEPT EXISTS EXPLAIN EXTRACT FALSE FETCH FILTER FOR
FOREIGN FROM FULL FUNCTION GRANT GROUP GROUPING HAVING IF ILIKE IN INNER INSERT INTERSECT INTERVAL INTO IS JOIN
LATERAL LEADING LEFT LIKE LIMIT LOCAL LOCALTIMESTAMP MAP MATCH_RECOGNIZE MINUS NATURAL NOT NULL NULLS OF OFFSET
ON ONLY OR ORDER OUTER OVER OVERLAPS OVERLAY PARTITION PIVOT POSITION PRIMARY QUALIFY RANGE RECURSIVE REFERENCES
REGEXP REPLACE RIGHT RLIKE ROLLUP ROW ROWS SELECT SEMI SESSION_USER SET SIMILAR SOME SORT SQL START_WITH STRUCT
SUBSTRING TABLE TABLESAMPLE THEN TO TRAILING TRIM TRUE UNION UNIQUE UNKNOWN UNNEST UNPIVOT UPDATE
USER USING VALUES VIEW WHEN WHERE WITH WITHIN"""
_RESERVED = frozenset(_WORDS.split())
"""Words that are, or may be, keywords somewhere in SQL."""

_OPERATIONS = frozenset({"add", "sub", "mul", "div", "mod", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "neg"})


def is_plain(source: Source, tokens: Tokens) -> bool:
    """Whether columns, literals, arithmetic, comparisons and aggregates are all that there is in a SELECT.

    >>> from weft.sql.tokens import tokenize
    >>> texts = "SELECT max(v) FROM t GROUP BY window(ts, '1 hour')", "SELECT upper(sym) FROM t", "SELECT FROM t"
    >>> [is_plain(Source(text), tokenize(Source(text))) for text in texts]
    [True, False, False]
    """
    try:
        parts = clauses(source, tokens)
        items = [read_item(item) for item in parts.items]
        others = [read(each) for each in (*parts.group, parts.where, parts.having) if each]
    except (Refused, Unreadable):
        return False
    aliases = [alias for alias in (parts.alias, *(alias for _, alias in items)) if alias is not None]
    names = [*(token for token in parts.table if token.is_name), *aliases]
    return (
        not parts.window
        and all(map(_is_name, names))
        and all(map(_is_plain_node, [*(node for node, _ in items), *others]))
    )


def _is_name(token: Token) -> bool:
    return token.kind == "word" and token.upper not in _RESERVED


def _ends_with_its_arguments(node: Node) -> bool:
    """Whether a call ends with its arguments: FILTER and the like may follow them."""
    return closing(node.tokens, 1) == len(node.tokens) - 1


def _is_plain_node(node: Node) -> bool:
    if node.kind == "literal":
        return node.name in ("number", "string") and len(node.tokens) == 1
    if node.kind == "column":
        return all(map(_is_name, node.path))
    if node.kind == "call":
        function = aggregate_named(node.name)
        served = node.name == "window" or function
        bare = not node.distinct and not node.nulls and _is_name(node.tokens[0]) and _ends_with_its_arguments(node)
        star = function is not None and AGGREGATES[function].spelling.star
        counts = star and [arg.kind for arg in node.args] == ["star"] and len(node.tokens) == 4
        return bool(served) and bare and (counts or all(map(_is_plain_node, node.args)))
    return (node.kind == "paren" or (node.kind == "op" and node.name in _OPERATIONS)) and all(
        map(_is_plain_node, node.args)
    )
