"""Aggregate calls in canonical form: `mean(Price)` and `avg(price)` are the same call."""

from __future__ import annotations

from weft.aggregates import AGGREGATES
from weft.aggregates.aggregate import Spelling
from weft.aggregates.literals import numbers_of
from weft.model import Call
from weft.sql.canonical import bare, canonical
from weft.sql.filters import filter_text
from weft.sql.functions import aggregate_named
from weft.sql.refuse import Source
from weft.sql.syntax import read
from weft.sql.syntax_tree import Node, Unreadable


def is_aggregate(node: Node) -> bool:
    return node.kind in ("call", "opaque") and aggregate_named(node.name) is not None


def read_call(source: Source, node: Node) -> Call:
    """The call of a node; unsupported DISTINCT, nesting and the like are refused before."""
    function, args = aggregate_named(node.name) or node.name, node.args
    spelling = AGGREGATES[function].spelling
    if node.distinct and spelling.distinct:
        function = spelling.distinct
        spelling = AGGREGATES[function].spelling
    if node.within or node.name in spelling.needs_within_group:
        ordered_by, descending = _ordered_by(source, node, spelling)
        args = (ordered_by, *args)
        if descending:
            function = spelling.descending
    if spelling.needless_flag and len(args) == 2 and args[1].kind == "literal":
        args = args[:1]
    least, most = AGGREGATES[function].arity
    if node.kind == "opaque" or not least <= len(args) <= most:
        count = f"{least} argument{'s' * (least > 1)}" if least == most else f"{least} or {most} arguments"
        reason = f"{node.name} takes {'an expression' if node.kind == 'opaque' or spelling.star else count}."
        raise source.refuse(node.start, node.end, reason, f"Write {node.name}({', '.join('xy'[:least])}).")
    _check_numbers(source, node, spelling, args)
    ignore = node.nulls == "IGNORE"
    if spelling.ignores_nulls:
        if len(args) == 2:
            ignore = _flag(source, node, args[1])
            args = args[:1]
    elif node.nulls:
        reason = f"{node.name} does not see nulls, so {node.nulls} NULLS has no meaning for it."
        raise source.refuse(node.start, node.end, reason, f"Leave {node.nulls} NULLS out.")
    for arg in args:
        star = arg.kind == "star"
        if star and (not spelling.star or len(args) > 1 or len(arg.tokens) > 1):
            reason = f"{node.name}({canonical(arg.tokens)}) names no column."
            columns = "(DISTINCT a, b)" if node.distinct else "(a, b)"
            way_out = f"Name the columns, as in {node.name}{columns if spelling.star or node.distinct else '(x)'}."
            raise source.refuse(arg.start, arg.end, reason, way_out)
    # count(1) and count('x') count every row.
    never_null = all(a.kind == "star" or (a.kind == "literal" and a.name != "null") for a in args)
    counts_rows = never_null and spelling.star
    return Call(
        function=function,
        arguments=() if counts_rows else tuple(canonical(bare(a.tokens)) for a in args),
        condition=filter_text(node.filter) if node.filter else None,
        ignore_nulls=ignore,
    )


def _ordered_by(source: Source, node: Node, spelling: Spelling) -> tuple[Node, bool]:
    """The x of WITHIN GROUP (ORDER BY x), and whether the order descends."""
    tokens, written = node.within, spelling.within_group.get(node.name)
    if written is None:
        reason = f"{node.name} does not depend on the order of values."
        raise source.refuse(node.start, node.end, reason, "Leave WITHIN GROUP (...) out.")
    if [t.upper for t in tokens[:2]] != ["ORDER", "BY"]:
        reason = f"{node.name} does not say what is put in order."
        raise source.refuse(node.start, node.end, reason, f"Write {written} WITHIN GROUP (ORDER BY x).")
    tokens = tokens[2:]
    if [t.upper for t in tokens[-2:]] in (["NULLS", "FIRST"], ["NULLS", "LAST"]):
        tokens = tokens[:-2]  # NULLs have no place in the order: they are left out
    descending = bool(tokens) and tokens[-1].upper == "DESC"
    if descending and not spelling.descending:
        at = tokens[-1]
        reason = f"of equally frequent values weft's {node.name} gives the least."
        way_out = f"Write -{written} WITHIN GROUP (ORDER BY -x) if x is a number, or run this query outside weft."
        raise source.refuse(at.start, at.end, reason, way_out)
    try:
        return read(tokens[:-1] if descending or (tokens and tokens[-1].upper == "ASC") else tokens), descending
    except Unreadable as stop:
        at = stop.token or node.within[-1]
        reason = f"weft puts the values of {node.name} in order by one expression."
        way_out = f"Write {written} WITHIN GROUP (ORDER BY x)."
        raise source.refuse(at.start, at.end, reason, way_out) from None


def _check_numbers(source: Source, node: Node, spelling: Spelling, args: tuple[Node, ...]) -> None:
    first = len(args) if spelling.numbers_from is None else spelling.numbers_from
    for arg in args[first:]:
        if numbers_of(canonical(bare(arg.tokens))) is None:
            reason = f"{canonical(arg.tokens)} must be a number, or an array of numbers, for {node.name}."
            raise source.refuse(arg.start, arg.end, reason, f"Write {node.name}(x, 0.5), with the number itself.")
    if spelling.items is not None and len(args) > spelling.items:
        items = args[spelling.items]
        if not canonical(items.tokens).strip("0").isdigit():
            reason = f"{canonical(items.tokens)} must say how many items {node.name} gives, one at least."
            raise source.refuse(items.start, items.end, reason, f"Write {spelling.example}.")
    if spelling.filter_problem and node.filter:
        reason = f"{node.name} {spelling.filter_problem}."
        raise source.refuse(node.start, node.end, reason, "Put the condition in WHERE.")


def _flag(source: Source, node: Node, arg: Node) -> bool:
    if arg.kind == "literal" and arg.name in ("true", "false"):
        return arg.name == "true"
    reason = f"the second argument of {node.name} says whether nulls are ignored, and must be true or false."
    raise source.refuse(arg.start, arg.end, reason, f"Write {node.name}(x, true).")
