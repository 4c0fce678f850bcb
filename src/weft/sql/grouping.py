"""GROUP BY: its keys, written as expression, position or alias, and the window among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.sql.calls import is_aggregate
from weft.sql.canonical import bare, canonical
from weft.sql.clauses import Clauses
from weft.sql.refuse import Source
from weft.sql.syntax import read, read_item
from weft.sql.syntax_tree import Node, Unreadable
from weft.sql.tokens import Token, Tokens, is_call
from weft.sql.unsupported import screen
from weft.sql.window import Windowing, read_cql, read_window


@dataclass(frozen=True, slots=True)
class Item:
    """A column of the SELECT list."""

    node: Node
    alias: Token | None


def read_items(source: Source, clauses: Clauses) -> list[Item]:
    items = []
    for tokens in clauses.items:
        try:
            items.append(Item(*read_item(tokens)))
        except Unreadable as stop:
            raise unreadable(source, tokens, stop) from None
    return items


def unreadable(source: Source, tokens: Tokens, stop: Unreadable) -> Exception:
    at = stop.token or tokens[-1]
    reason = f"{at.text} is not expected here." if stop.token else f"something is missing after {at.text}."
    return source.refuse(at.start, at.end, reason, "Write it as Spark SQL.")


@dataclass(frozen=True, slots=True)
class Grouping:
    keys: tuple[str, ...]
    folded: Mapping[str, int]
    windowing: Windowing


def read_grouping(source: Source, clauses: Clauses, items: list[Item], event_time: str) -> Grouping:
    """Keys in the order of the query, without duplicates and without the window."""
    windowing = read_cql(source, clauses.window, event_time) if clauses.window else None
    keys: dict[str, Tokens] = {}
    columns = _columns_for_sure(clauses, items)
    for written in clauses.group:
        tokens = _resolve(source, clauses, written, items, columns)
        node = _read(tokens)
        if node is not None and node.kind == "call" and node.name == "window":
            window = read_window(source, node)
            if windowing is not None:
                raise source.refuse(
                    written[0].start, written[-1].end, "a query has one window, and this is another one.",
                    "Write a query for each window.",
                )  # fmt: skip
            windowing = window
            continue
        _refuse_window_inside(source, written, tokens)
        if tokens[0].name == "window":
            reason = "window is the query's window, not a key of its groups."
            raise source.refuse(written[0].start, written[-1].end, reason, "Leave it out: every answer has one window.")
        screen(source, tokens, aggregates="GROUP BY")
        keys.setdefault(canonical(tokens), tokens)
    if windowing is None:
        raise _no_window(source, clauses, event_time)
    folded: dict[str, int] = {}
    for i, tokens in enumerate(keys.values()):
        folded.setdefault(canonical(tokens, fold=True), i)
    return Grouping(tuple(keys), folded, windowing)


def _read(tokens: Tokens) -> Node | None:
    try:
        return read(bare(tokens))
    except Unreadable:
        return None


def _resolve(source: Source, clauses: Clauses, written: Tokens, items: list[Item], columns: set[str]) -> Tokens:
    """The expression of a key: that of a SELECT column if the key is its position or its alias."""
    tokens = bare(written)
    place = "".join(t.text for t in tokens)
    if place.lstrip("-").isdigit():
        if not 1 <= int(place) <= len(items):
            reason = f"there is no column {place} in the SELECT list, which has {len(items)}."
            raise source.refuse(written[0].start, written[-1].end, reason, "Group by the expression itself.")
        return _moved(items[int(place) - 1].node, written)
    if len(tokens) != 1 or not tokens[0].is_name or tokens[0].name in columns:
        return tokens
    meant = [i for i in items if i.alias is not None and i.alias.name == tokens[0].name]
    if not meant or canonical(bare(meant[0].node.tokens)) == canonical(tokens):
        return tokens
    node = meant[0].node
    if any(is_aggregate(n) for n in node.walk()):
        return tokens  # an aggregate cannot be a key, so it must be a column of that name
    others = {canonical(bare(k)) for k in clauses.group if k is not written}
    names = {canonical(n.tokens) for n in node.walk() if n.kind == "column"}
    opaque = any(n.kind == "opaque" for n in node.walk())
    if not opaque and names <= others:
        # Spark prefers a column of that name if the stream has one, and the query would be valid in both cases.
        reason = f"{tokens[0].text} may be a column of the stream or an alias in SELECT: the groups would differ."
        way_out = f"Write GROUP BY {canonical(bare(node.tokens))}, or give the column in SELECT another name."
        raise source.refuse(written[0].start, written[-1].end, reason, way_out)
    return _moved(node, written)


def _moved(node: Node, written: Tokens) -> Tokens:
    """The tokens of a SELECT column, with the position of the key, for refusals."""
    return [t._replace(start=written[0].start, end=written[-1].end) for t in bare(node.tokens)]


def _columns_for_sure(clauses: Clauses, items: list[Item]) -> set[str]:
    """Names that can only be columns of the stream: aliases are not visible in WHERE or in arguments of aggregates."""
    columns = _heads(clauses.where)
    for item in items:
        for node in item.node.walk():
            if is_aggregate(node):
                columns |= _heads(node.tokens)
        if item.alias and item.alias.name in _heads(item.node.tokens):
            columns.add(item.alias.name)
    return columns


def _heads(tokens: Tokens) -> set[str]:
    return {
        t.name
        for i, t in enumerate(tokens)
        if t.is_name and not is_call(tokens, i) and not (i and tokens[i - 1].text == ".")
    }


def _refuse_window_inside(source: Source, written: Tokens, tokens: Tokens) -> None:
    if any(is_call(tokens, i) and tokens[i].name == "window" for i in range(len(tokens))):
        reason = "window() must stand by itself in GROUP BY."
        way_out = "Write GROUP BY window(ts, '1 hour'), and window.start or window.end in SELECT."
        raise source.refuse(written[0].start, written[-1].end, reason, way_out)


def _no_window(source: Source, clauses: Clauses, event_time: str) -> Exception:
    place = [t for key in clauses.group for t in key] or clauses.table
    return source.refuse(
        place[0].start, place[-1].end, "this query has no window, so its answer would never be complete.",
        f"Add window({event_time}, '1 hour') to GROUP BY, or write {canonical(clauses.table)} [RANGE 1 HOUR].",
    )  # fmt: skip
