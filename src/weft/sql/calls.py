"""Aggregate calls in one spelling: `mean(Price)` and `avg(price)` are the same call."""

from __future__ import annotations

from weft.aggregates import AGGREGATES, NUMBERS_FROM, numbers_of
from weft.model import Call
from weft.sql.canonical import bare, canonical
from weft.sql.filters import filter_text
from weft.sql.functions import OF_AN_ORDER, aggregate_named
from weft.sql.refuse import Source
from weft.sql.syntax import Node, Unreadable, read


def is_aggregate(node: Node) -> bool:
    return node.kind in ("call", "opaque") and aggregate_named(node.name) is not None


def read_call(source: Source, node: Node) -> Call:
    """The call that a node of the tree is; DISTINCT, nesting and the like were refused before."""
    function, args = aggregate_named(node.name) or node.name, node.args
    if function == "count" and node.distinct:
        function = "count_distinct"
        if len(args) > 1:
            reason = (
                f"{canonical(node.tokens)} counts distinct pairs, and weft counts distinct values of one expression."
            )
            raise source.refuse(node.start, node.end, reason, "Write count(DISTINCT concat_ws('|', x, y)).")
    if node.within or node.name in ("percentile_cont", "percentile_disc"):
        args = (_ordered_by(source, node), *args)
    if function == "mode" and len(args) == 2 and args[1].kind == "literal":
        args = args[:1]  # Of equally frequent values weft gives the least: both of Spark's modes allow that.
    least, most = AGGREGATES[function].arity
    if node.kind == "opaque" or not least <= len(args) <= most:
        count = f"{least} argument{'s' * (least > 1)}" if least == most else f"{least} or {most} arguments"
        reason = f"{node.name} takes {'an expression' if node.kind == 'opaque' or function == 'count' else count}."
        raise source.refuse(node.start, node.end, reason, f"Write {node.name}({', '.join('xy'[:least])}).")
    _check_numbers(source, node, function, args)
    ignore = node.nulls == "IGNORE"
    if function in ("first", "last"):
        if len(args) == 2:
            ignore = _flag(source, node, args[1])
            args = args[:1]
    elif node.nulls:
        reason = f"{node.name} does not see nulls, so {node.nulls} NULLS has no meaning for it."
        raise source.refuse(node.start, node.end, reason, f"Leave {node.nulls} NULLS out.")
    for arg in args:
        star = arg.kind == "star"
        if star and (function != "count" or len(args) > 1 or len(arg.tokens) > 1):
            reason = f"{node.name}({canonical(arg.tokens)}) names no column."
            raise source.refuse(arg.start, arg.end, reason, "Write count(*), or name a column.")
    # A row counts for count(1) and count('x') whatever it holds.
    never_null = all(a.kind == "star" or (a.kind == "literal" and a.name != "null") for a in args)
    return Call(
        function=function,
        arguments=() if function == "count" and never_null else tuple(canonical(bare(a.tokens)) for a in args),
        condition=filter_text(node.filter) if node.filter else None,
        ignore_nulls=ignore,
    )


def _ordered_by(source: Source, node: Node) -> Node:
    """The x of WITHIN GROUP (ORDER BY x)."""
    tokens, written = node.within, OF_AN_ORDER.get(node.name)
    if written is None:
        reason = f"{node.name} does not depend on the order of values."
        raise source.refuse(node.start, node.end, reason, "Leave WITHIN GROUP (...) out.")
    if [t.upper for t in tokens[:2]] != ["ORDER", "BY"]:
        reason = f"{node.name} does not say what is put in order."
        raise source.refuse(node.start, node.end, reason, f"Write {written} WITHIN GROUP (ORDER BY x).")
    ascending = tokens[2:-1] if tokens[-1].upper == "ASC" else tokens[2:]
    try:
        return read(ascending)
    except Unreadable as stop:
        at = stop.token or tokens[-1]
        reason = f"weft puts the values of {node.name} in ascending order, by one expression."
        way_out = f"Write {written} WITHIN GROUP (ORDER BY x)"
        way_out += ", and 1 less the share instead of DESC." if node.args else "."
        raise source.refuse(at.start, at.end, reason, way_out) from None


def _check_numbers(source: Source, node: Node, function: str, args: tuple[Node, ...]) -> None:
    for arg in args[NUMBERS_FROM.get(function, len(args)) :]:
        if numbers_of(canonical(bare(arg.tokens))) is None:
            reason = f"{canonical(arg.tokens)} must be a number, or an array of numbers, for {node.name}."
            raise source.refuse(arg.start, arg.end, reason, f"Write {node.name}(x, 0.5), with the number itself.")
    if function == "top_k_sum" and len(args) == 3 and not canonical(args[2].tokens).strip("0").isdigit():
        reason = f"{canonical(args[2].tokens)} must say how many items {node.name} gives, one at least."
        raise source.refuse(args[2].start, args[2].end, reason, f"Write {node.name}(item, measure, 5).")
    if function == "approx_top_k" and node.filter:
        reason = f"{node.name} also counts NULL, and FILTER could not tell it from rows that are left out."
        raise source.refuse(node.start, node.end, reason, "Put the condition in WHERE.")


def _flag(source: Source, node: Node, arg: Node) -> bool:
    if arg.kind == "literal" and arg.name in ("true", "false"):
        return arg.name == "true"
    reason = f"the second argument of {node.name} says whether nulls are ignored, and must be true or false."
    raise source.refuse(arg.start, arg.end, reason, f"Write {node.name}(x, true).")
