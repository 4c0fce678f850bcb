"""Filters in canonical form, so that two queries with the same filter have the same text.

Spark evaluates AND and OR from left to right and stops early, and an ANSI cast or division raises: in
`kind = 'n' AND value / size > 2` the first conjunct guards the second. So conjuncts are reordered only if none of them
can raise an error that another one prevented.
"""

from __future__ import annotations

from weft.sql.canonical import bare, canonical
from weft.sql.syntax import read
from weft.sql.syntax_tree import Node, Unreadable
from weft.sql.tokens import Tokens

_TURNED = {"eq": "=", "ne": "!=", "lt": ">", "le": ">=", "gt": "<", "ge": "<=", "null_safe_eq": "<=>"}

NEVER_RAISES, COMPARES, MAY_RAISE = 0, 1, 2


def filter_text(tokens: Tokens) -> str:
    """Conjuncts are flattened, sorted and unique; literals are on the right of comparisons."""
    try:
        return _text(read(tokens))
    except Unreadable:
        return canonical(bare(tokens))


def conjuncts(node: Node) -> list[Node]:
    """The conditions that a row must all pass, without parentheses."""
    node = _inside(node)
    return _flat(node) if _is(node, "and") else [node]


def _text(node: Node) -> str:
    while node.kind == "paren":
        node = node.args[0]
    if node.kind == "op" and node.name in ("and", "or"):
        parts = [(_risk(n), f"({_text(n)})" if node.name == "and" and _is(n, "or") else _text(n)) for n in _flat(node)]
        return f" {node.name.upper()} ".join(_ordered(parts))
    if node.kind == "op" and node.name in _TURNED and _is_literal(node.args[0]) and not _is_literal(node.args[1]):
        left, right = (canonical(n.tokens) for n in node.args)
        return f"{right} {_TURNED[node.name]} {left}"
    return canonical(bare(node.tokens))


def _flat(node: Node) -> list[Node]:
    """The operands of nested ANDs, or of nested ORs."""
    operands = []
    for arg in node.args:
        inner = _inside(arg)
        operands += _flat(inner) if inner.kind == "op" and inner.name == node.name else [inner]
    return operands


def _inside(node: Node) -> Node:
    while node.kind == "paren":
        node = node.args[0]
    return node


def _is(node: Node, name: str) -> bool:
    return node.kind == "op" and node.name == name


def _is_literal(node: Node) -> bool:
    return _inside(node).kind == "literal"


def _ordered(parts: list[tuple[int, str]]) -> list[str]:
    """Conditions that never raise come first; comparisons are sorted only among neighbours; others keep their order."""
    ordered = sorted(text for risk, text in parts if risk == NEVER_RAISES)
    run: list[str] = []
    for risk, text in [p for p in parts if p[0] != NEVER_RAISES]:
        if risk == COMPARES:
            run.append(text)
        else:
            ordered += [*sorted(run), text]
            run = []
    return list(dict.fromkeys(ordered + sorted(run)))


def _risk(node: Node) -> int:
    node = _inside(node)
    if node.kind in ("column", "literal"):
        return NEVER_RAISES
    if node.kind != "op":
        return MAY_RAISE
    args = [_inside(a) for a in node.args]
    if node.name in ("and", "or", "not"):
        return max(_risk(a) for a in args)
    if any(a.kind not in ("column", "literal") for a in args):
        return MAY_RAISE
    if node.name in ("is_null", "is_not_null", "like", "ilike", "rlike", "regexp"):
        return NEVER_RAISES
    if node.name in _TURNED or node.name in ("in", "between"):
        # Compared with a string, a column is not cast; compared with a number, a string column is, which may raise.
        others = [a for a in args if a.kind == "literal"]
        texts = bool(others) and len(others) == len(args) - 1 and all(a.name == "string" for a in others)
        return NEVER_RAISES if texts else COMPARES
    return MAY_RAISE
