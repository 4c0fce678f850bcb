"""The predicates of a filter, conjunct by conjunct: which columns it compares with which literals.

Filters that compare one column with literals can pass a row in few ways together, however many they are: `price > 500`
implies `price > 100`, so that two thresholds have three outcomes and not four.
"""

from __future__ import annotations

from collections.abc import Mapping

from weft.sql.canonical import canonical
from weft.sql.filters import conjuncts
from weft.sql.refuse import Source
from weft.sql.syntax import read
from weft.sql.syntax_tree import Node, Unreadable
from weft.sql.tokens import tokenize

_COMPARES = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "null_safe_eq", "in", "between"})

Cuts = Mapping[str, frozenset[str]]
"""Per column, the values at which filters cut its range; any other predicate is an entry of its own."""


def cuts(where: str) -> Cuts:
    """
    >>> {column: sorted(cuts) for column, cuts in cuts("price > 5 AND kind IN ('a', 'b') AND price < 9").items()}
    {'price': ['5', '9'], 'kind': ["'a'", "'b'"]}
    >>> {column: sorted(cuts) for column, cuts in cuts("length(name) > 5").items()}
    {'length(name) > 5': ['']}
    """
    try:
        parts = conjuncts(read(tokenize(Source(where))))
    except Unreadable:
        return {where: frozenset({""})}
    by_column: dict[str, frozenset[str]] = {}
    for part in parts:
        column, values = _of(part)
        by_column[column] = by_column.get(column, frozenset()) | values
    return by_column


def _of(node: Node) -> tuple[str, frozenset[str]]:
    if node.kind == "op" and node.name in _COMPARES:
        columns = [a for a in node.args if a.kind == "column"]
        literals = [a for a in node.args if a.kind == "literal"]
        if len(columns) == 1 and len(literals) == len(node.args) - 1:
            return canonical(columns[0].tokens), frozenset(canonical(a.tokens) for a in literals)
    return canonical(node.tokens), frozenset({""})
