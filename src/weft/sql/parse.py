"""Text to queries: split into statements, checked, parsed clause by clause, and written as plain Spark SQL."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

from weft.model import ACQ, Expression, Output
from weft.sql.canonical import canonical
from weft.sql.check import check_syntax
from weft.sql.clauses import Clauses, clauses, cql_bracket
from weft.sql.expressions import Lowering
from weft.sql.filters import filter_text
from weft.sql.grouping import Item, read_grouping, read_items, unreadable
from weft.sql.refuse import Refused, Source
from weft.sql.statements import Statement, statements
from weft.sql.syntax import read
from weft.sql.syntax_tree import Unreadable
from weft.sql.template_cache import Shapes
from weft.sql.tokens import Token, Tokens, is_call, tokenize
from weft.sql.unsupported import screen
from weft.sql.window import Windowing

LONGEST_NAME = 200
"""Most bytes of a URL-encoded query name, which is also the name of a folder."""


def parse(text: str, *, name: str | None = None, event_time: str = "ts") -> tuple[ACQ, ...]:
    """The queries of a text. `name` is for the only query without a name.

    `event_time` is the time column of CQL windows without `ON column`.

    >>> (q,) = parse("SELECT sym, max(price) FROM trades [RANGE 1 HOUR SLIDE 10 MINUTES] GROUP BY sym")
    >>> q.name, q.keys, q.window.slide, q.spark_sql
    ('q1', ('sym',), 600000000, "SELECT sym, max(price) FROM trades GROUP BY sym, window(ts, '1 hour', '10 minutes')")
    """
    source = Source(text)
    all_statements = statements(source)
    unnamed = [s.tokens[0] for s in all_statements if not s.named]
    if name is not None and len(unnamed) > 1:
        reason = f"the name {name} is for one query, and this is another query without a name."
        raise source.refuse(unnamed[1].start, unnamed[1].end, reason, "Name it with CREATE VIEW name AS SELECT ....")
    clock = canonical(tokenize(Source(event_time)))
    queries: dict[str, ACQ] = {}
    shapes = Shapes()
    for statement, begins in zip(
        all_statements, source.line_columns(s.tokens[0].start for s in all_statements), strict=True
    ):
        called = name if name and not statement.named else statement.name
        acq = shapes.find(statement, called)
        if acq is None:
            acq = _query(statement, called, clock)
            shapes.keep(statement, acq)
        acq = replace(acq, begins=begins)
        duplicate, long = acq.name.lower() in queries, len(quote(acq.name)) > LONGEST_NAME
        if duplicate or long:
            at, end = (statement.named or statement.tokens[:1])[0], (statement.named or statement.tokens[:1])[-1]
            too_long = f"a name has at most {LONGEST_NAME} bytes as it stands in a URL: sinks call folders by it."
            reason = f"another query is named {acq.name} already." if duplicate else too_long
            raise source.refuse(at.start, end.end, reason, "Name it with CREATE VIEW name AS SELECT ....")
        queries[acq.name.lower()] = acq
    return tuple(queries.values())


def _query(statement: Statement, name: str, clock: str) -> ACQ:
    try:
        return _read(statement, name, clock)
    except RecursionError:
        at = statement.tokens[0]
        reason = "this query is nested too deeply to be read."
        raise statement.source.refuse(at.start, at.end, reason, "Write it with fewer levels.") from None


def _read(statement: Statement, name: str, clock: str) -> ACQ:
    source = statement.source
    check_syntax(source, statement.select)
    raw = clauses(source, statement.select)
    parts = _unqualified(raw)
    for tokens in parts.items:
        screen(source, tokens)
    _refuse_window_in(source, parts.where)
    screen(source, parts.where, aggregates="WHERE")
    for tokens in parts.group:
        screen(source, tokens, aggregates="GROUP BY")
    screen(source, parts.having)
    items = read_items(source, parts)
    grouping = read_grouping(source, parts, items, clock)
    lowering = Lowering(source, grouping.keys, grouping.folded, grouping.windowing, cql=bool(parts.window))
    outputs = tuple(_output(lowering, item) for item in items)
    having = _having(lowering, parts) if parts.having else None
    if not lowering.calls:
        start, end = parts.items[0][0].start, parts.items[-1][-1].end
        raise source.refuse(start, end, "this query aggregates nothing.", "Select an aggregate, such as count(*).")
    return ACQ(
        name=name,
        window=grouping.windowing.window,
        calls=tuple(lowering.calls),
        outputs=outputs,
        source=_table_name(parts.table),
        event_time=grouping.windowing.event_time,
        keys=grouping.keys,
        where=filter_text(parts.where) if parts.where else None,
        having=having,
        refresh=grouping.windowing.refresh,
        priority=grouping.windowing.priority,
        text=statement.text,
        spark_sql=_spark_sql(statement, raw, grouping.windowing, lowering.edits),
        ttl=statement.ttl,
    )


def _output(lowering: Lowering, item: Item) -> Output:
    """A column without an alias keeps its name; other expressions are named by Spark later."""
    expression = lowering.lower(item.node)
    if item.alias is not None:
        lowering.aliases.setdefault(item.alias.name, expression)
        return Output(item.alias.plain, expression)
    if item.node.kind == "column":
        return Output(item.node.path[-1].plain, expression)
    return Output("window" if item.node.kind == "call" and expression.op == "window" else "", expression)


def _having(lowering: Lowering, parts: Clauses) -> Expression:
    try:
        return lowering.lower(read(parts.having))
    except Unreadable as stop:
        raise unreadable(lowering.source, parts.having, stop) from None


def _refuse_window_in(source: Source, where: Tokens) -> None:
    for i, token in enumerate(where):
        if token.name == "window" and is_call(where, i):
            reason = "window() in WHERE would need the windows before rows are assigned to them."
            raise source.refuse(token.start, token.end, reason, "Filter on the time column, or on window in HAVING.")


def _table_name(tokens: Tokens) -> str:
    return ".".join(canonical([t]) if t.plain.isidentifier() else t.text for t in tokens if t.is_name)


def _unqualified(parts: Clauses) -> Clauses:
    """Columns without the table's name or alias before them: there is only one stream."""
    strip = [(q, len(q)) for q in parts.qualifiers]

    def each(tokens: Tokens) -> Tokens:
        bound = _lambda_names(tokens)
        kept: list[Token] = []
        at = 0
        while at < len(tokens):
            qualifier = 0
            if tokens[at].is_name and not (at and tokens[at - 1].text == ".") and tokens[at].name not in bound:
                qualifier = next((2 * n for names, n in strip if _stands(tokens, at, names)), 0)
            if qualifier:
                kept.append(tokens[at + qualifier]._replace(start=tokens[at].start))
                at += qualifier + 1
            else:
                kept.append(tokens[at])
                at += 1
        return kept

    return replace(
        parts,
        items=tuple(map(each, parts.items)),
        window=each(parts.window),
        where=each(parts.where),
        group=tuple(map(each, parts.group)),
        having=each(parts.having),
    )


def _stands(tokens: Tokens, at: int, names: list[str]) -> bool:
    """Whether `names`, each followed by a dot, and then a column are here."""
    end = at + 2 * len(names)
    if end >= len(tokens) or not tokens[end].is_name or (end + 1 < len(tokens) and tokens[end + 1].text == "("):
        return False
    pairs = zip(names, range(at, end, 2), strict=True)
    return all(tokens[i].is_name and tokens[i].name == n and tokens[i + 1].text == "." for n, i in pairs)


def _lambda_names(tokens: Tokens) -> set[str]:
    names: set[str] = set()
    for i, token in enumerate(tokens):
        if token.text == "->":
            j = i - 1
            while j >= 0 and (tokens[j].is_name or tokens[j].text in (",", ")")):
                names |= {tokens[j].name} if tokens[j].is_name else set()
                if tokens[i - 1].text != ")":
                    break
                j -= 1
    return names


def _spark_sql(statement: Statement, parts: Clauses, windowing: Windowing, edits: list[tuple[int, int, str]]) -> str:
    """The user's SELECT, with CQL's window moved to GROUP BY. The rest stays: Spark names columns after the text."""
    text, tokens = statement.source.text, statement.select
    begin, end = tokens[0].start, tokens[-1].end
    bracket = cql_bracket(tokens)
    if bracket:
        opening, close = tokens[bracket[0]], tokens[bracket[1]]
        gap = "" if text[close.end : close.end + 1].isspace() else " "
        edits = [*edits, (tokens[bracket[0] - 1].end, close.end, gap if close is not tokens[-1] else "")]
        if parts.group:
            place, added = parts.group[-1][-1].end, f", {windowing.sql}"
        else:
            before = [t for t in tokens if not parts.having_keyword or t.start < parts.having_keyword.start]
            place, added = before[-1].end, f" GROUP BY {windowing.sql}"
        if place == close.end:
            edits[-1] = (edits[-1][0], close.end, added)
        else:
            edits.append((place, place, added))
        # A comment between the table and its window would hide the rest of the line.
        if text[tokens[bracket[0] - 1].end : opening.start].strip():
            edits = [e if e[1] != close.end or e[0] == e[1] else (opening.start, close.end, e[2]) for e in edits]
    for start, stop, new in sorted(edits, reverse=True):
        text, end = text[:start] + new + text[stop:], end + len(new) - (stop - start)
    return text[begin:end]


__all__ = ["Refused", "parse"]
