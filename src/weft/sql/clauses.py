"""A SELECT cut into its clauses; anything beyond one windowed aggregation over one stream is refused here."""

from __future__ import annotations

from dataclasses import dataclass

from weft.sql.canonical import KEYWORDS
from weft.sql.refuse import Source
from weft.sql.tokens import Token, Tokens, closing

_BEFORE = "Do it on the stream before you hand it to weft."
_TAKE = "Take what you need from the answers."
_AFTER = "Run this query outside weft, or apply it to the answers."
_REFUSED: dict[tuple[str, ...], tuple[str, str]] = {
    ("ORDER", "BY"): ("answers come as windows close, so ORDER BY has nothing to sort.", "Sort the answers."),
    ("SORT", "BY"): ("answers come as windows close, so SORT BY has nothing to sort.", "Sort the answers."),
    ("CLUSTER", "BY"): ("weft places its answers itself, so CLUSTER BY has no meaning here.", "Leave it out."),
    ("DISTRIBUTE", "BY"): ("weft places its answers itself, so DISTRIBUTE BY has no meaning here.", "Leave it out."),
    ("LIMIT",): ("the stream of answers does not end, so LIMIT has no meaning here.", _TAKE),
    ("OFFSET",): ("the stream of answers does not end, so OFFSET has no meaning here.", _TAKE),
    ("QUALIFY",): ("QUALIFY filters window functions, which weft does not compute.", _AFTER),
    ("LATERAL",): ("LATERAL makes several rows from one before they are aggregated.", _BEFORE),
    ("PIVOT",): ("PIVOT is not a windowed aggregation that weft can share.", "Use FILTER (WHERE ...) on aggregates."),
    ("UNPIVOT",): ("UNPIVOT makes several rows from one before they are aggregated.", _BEFORE),
    ("TABLESAMPLE",): ("TABLESAMPLE picks other rows in every run.", "Filter on a hash of a column in WHERE."),
    ("WINDOW",): ("named windows belong to window functions, which weft does not compute.", _AFTER),
    ("UNION",): ("UNION combines several queries.", "Give weft each SELECT on its own."),
    ("INTERSECT",): ("INTERSECT combines several queries.", "Give weft each SELECT on its own."),
    ("EXCEPT",): ("EXCEPT combines several queries.", "Give weft each SELECT on its own."),
    ("MINUS",): ("MINUS combines several queries.", "Give weft each SELECT on its own."),
    ("|>",): ("weft does not read the pipe syntax.", "Write SELECT ... FROM ... WHERE ... GROUP BY ...."),
}  # fmt: skip
_JOIN = ("one query reads one stream.", "Join first: give weft the joined stream, and select from that.")
_JOINS = frozenset({"JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "SEMI", "ANTI", ","})
_CONNECTIVES = KEYWORDS - {"END", "NULL", "TRUE", "FALSE"}


@dataclass(frozen=True, slots=True)
class Clauses:
    """The tokens of each clause, without its keyword. `window` are the tokens between CQL's brackets."""

    items: tuple[Tokens, ...]
    table: Tokens
    alias: Token | None
    window: Tokens
    where: Tokens
    group: tuple[Tokens, ...]
    having: Tokens
    having_keyword: Token | None

    @property
    def qualifiers(self) -> list[list[str]]:
        """What may stand before a column's name: the alias, else the table's name, in full or its last part."""
        if self.alias:
            return [[self.alias.name]]
        names = [t.name for t in self.table if t.is_name]
        return [names[i:] for i in range(len(names))]


def cql_bracket(tokens: Tokens) -> tuple[int, int] | None:
    """Where `FROM table [...]` has its brackets: positions of both. An array's `[` never follows a table."""
    after_from = False
    for i, token in enumerate(tokens):
        if token.upper == "FROM":
            after_from = True
        elif after_from and token.text == "[":
            return i, closing(tokens, i)
        elif (not token.is_name and token.text != ".") or token.upper in ("WHERE", "GROUP", "HAVING"):
            after_from = False
    return None


def clauses(source: Source, tokens: Tokens) -> Clauses:
    """Cut `tokens`, which begin with SELECT."""
    if len(tokens) > 1 and tokens[1].upper == "DISTINCT":
        raise source.refuse(
            tokens[1].start, tokens[1].end,
            "SELECT DISTINCT drops answers that repeat, and weft gives one for every window and group.",
            "Leave DISTINCT out, or apply it to the answers.",
        )  # fmt: skip
    first = 2 if len(tokens) > 1 and tokens[1].upper == "ALL" else 1
    at = _find_from(source, tokens)
    items = _by_commas(source, tokens[first:at], tokens[0])
    table, alias, window, at = _table(source, tokens, at)
    parts: dict[str, Tokens] = {}
    keywords: dict[str, Token] = {}
    for clause, words in (("WHERE", 1), ("GROUP", 2), ("HAVING", 1)):
        if at < len(tokens) and tokens[at].upper == clause:
            keywords[clause] = tokens[at]
            end = _clause_end(source, tokens, at + words)
            parts[clause] = tokens[at + words : end]
            if not parts[clause]:
                raise source.refuse(
                    tokens[at].start, tokens[at].end, f"nothing follows {clause}.", "Complete it, or leave it out."
                )
            at = end
    if at < len(tokens):
        raise _unexpected(source, tokens, at)
    group = _by_commas(source, parts["GROUP"], keywords["GROUP"]) if "GROUP" in parts else ()
    for key in group:
        _refuse_grouping_sets(source, key)
    return Clauses(
        items, table, alias, window, parts.get("WHERE", ()), group, parts.get("HAVING", ()), keywords.get("HAVING")
    )


def _find_from(source: Source, tokens: Tokens) -> int:
    depth = 0
    for i, token in enumerate(tokens):
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        # x IS DISTINCT FROM y is a comparison.
        if depth == 0 and token.upper == "FROM" and tokens[i - 1].upper not in ("DISTINCT", "."):
            return i
    raise source.refuse(
        tokens[0].start, tokens[0].end, "this query reads no stream.", "Add FROM and the stream's name."
    )


def _table(source: Source, tokens: Tokens, at: int) -> tuple[Tokens, Token | None, Tokens, int]:
    """The table after FROM, its alias, CQL's window, and where the next clause begins."""
    begin = at = at + 1
    if at < len(tokens) and tokens[at].text == "(":
        raise source.refuse(
            tokens[at].start, tokens[closing(tokens, at) - 1].end if closing(tokens, at) == len(tokens)
            else tokens[closing(tokens, at)].end,
            "a subquery in FROM would have to run before the windows are cut.",
            "Put its filter and expressions into the query itself, or hand weft the stream that it makes.",
        )  # fmt: skip
    while at < len(tokens) and (tokens[at].is_name if (at - begin) % 2 == 0 else tokens[at].text == "."):
        at += 1
    table = tokens[begin:at]
    if not table:
        raise source.refuse(tokens[begin - 1].start, tokens[begin - 1].end, "FROM names no stream.", "Name one.")
    if at < len(tokens) and tokens[at].text == "(":
        raise source.refuse(
            table[0].start, tokens[at].end, "a table function is not a stream.", "Select from the stream by its name."
        )
    alias: Token | None = None
    window: Tokens = ()
    for _ in range(2):
        if at < len(tokens) and tokens[at].text == "[" and not window:
            end = closing(tokens, at)
            window, at = tokens[at + 1 : end], end + 1
            if not window:
                raise source.refuse(
                    tokens[end - 1].start, tokens[end - 1].end, "the window is empty.", "Write [RANGE 1 HOUR]."
                )
        if alias is None and at < len(tokens) and (tokens[at].upper == "AS" or _is_alias(tokens, at)):
            at += tokens[at].upper == "AS"
            if at == len(tokens) or not tokens[at].is_name:
                raise source.refuse(tokens[at - 1].start, tokens[at - 1].end, "AS names nothing.", "Leave it out.")
            alias, at = tokens[at], at + 1
    if at < len(tokens) and tokens[at].upper not in ("WHERE", "GROUP", "HAVING"):
        raise _unexpected(source, tokens, at)
    return table, alias, window, at


def _is_alias(tokens: Tokens, at: int) -> bool:
    word = tokens[at].upper
    if tokens[at].kind == "quoted":
        return True
    follower = tokens[at + 1].upper if at + 1 < len(tokens) else ""
    clause = word in ("WHERE", "GROUP", "HAVING", "ON", "USING", "FOR", *_JOINS) or any(
        word == start[0] and (len(start) == 1 or follower == start[1]) for start in _REFUSED
    )
    return tokens[at].kind == "word" and not clause


def _clause_end(source: Source, tokens: Tokens, begin: int) -> int:
    """Where the next clause begins. Inside brackets and after a dot no word is a keyword."""
    depth = 0
    for i in range(begin, len(tokens)):
        token = tokens[i]
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if depth or token.kind == "quoted" or tokens[i - 1].text == ".":
            continue
        if token.upper == "HAVING" or (token.upper in ("WHERE", "GROUP") and i > begin):
            return i
        follower = tokens[i + 1].upper if i + 1 < len(tokens) else ""
        # A column may be called window or limit: only where no operand can stand is the word a keyword.
        before = tokens[i - 1]
        stands = i > begin and (before.kind != "op" or before.text in (")", "]")) and before.upper not in _CONNECTIVES
        for start in _REFUSED:
            if token.upper == start[0] and (start[1:] == (follower,) if start[1:] else stands):
                raise _unexpected(source, tokens, i)
    return len(tokens)


def _unexpected(source: Source, tokens: Tokens, at: int) -> Exception:
    token = tokens[at]
    follower = tokens[at + 1].upper if at + 1 < len(tokens) else ""
    for start, (reason, way_out) in _REFUSED.items():
        if token.upper == start[0] and (not start[1:] or start[1] == follower):
            return source.refuse(token.start, tokens[at + len(start) - 1].end, reason, way_out)
    if token.upper in _JOINS:
        return source.refuse(token.start, token.end, *_JOIN)
    return source.refuse(
        token.start, token.end, f"{token.text} is not expected here.",
        "A query is SELECT ... FROM one stream [WHERE ...] GROUP BY ..., window(...) [HAVING ...].",
    )  # fmt: skip


def _by_commas(source: Source, tokens: Tokens, keyword: Token) -> tuple[Tokens, ...]:
    parts: list[Tokens] = []
    depth = begin = 0
    before = keyword
    for i, token in enumerate([*tokens, None]):
        if token is not None:
            depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if token is None or (token.text == "," and depth == 0):
            parts.append(tokens[begin:i])
            if not parts[-1]:
                reason = f"something is missing after {before.text}."
                raise source.refuse(before.start, before.end, reason, "Complete the list, or remove the comma.")
            before, begin = token or before, i + 1
    return tuple(parts)


def _refuse_grouping_sets(source: Source, key: Tokens) -> None:
    for i, token in enumerate(key):
        follower = key[i + 1].upper if i + 1 < len(key) else ""
        grouping_sets = (
            (token.upper == "WITH" and follower in ("CUBE", "ROLLUP"))
            or (token.upper == "GROUPING" and follower == "SETS")
            or (i == 0 and token.upper in ("CUBE", "ROLLUP") and follower == "(")
        )
        if grouping_sets:
            reason = "CUBE, ROLLUP and GROUPING SETS are several groupings in one query."
            raise source.refuse(token.start, key[-1].end, reason, "Write one query for each grouping.")
    if len(key) == 1 and key[0].upper == "ALL":
        reason = "GROUP BY ALL does not name the keys."
        raise source.refuse(key[0].start, key[0].end, reason, "Write the keys and the window out.")
