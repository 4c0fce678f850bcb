"""Refuses functions that no clause may have: nondeterministic ones, generators, and those that read other rows."""

from __future__ import annotations

from weft.aggregates import AGGREGATES
from weft.sql.canonical import KEYWORDS, canonical
from weft.sql.functions import (
    BARE_NONDETERMINISTIC,
    GENERATORS,
    KEEPS_ROWS,
    NONDETERMINISTIC,
    OTHER_AGGREGATES,
    RANKINGS,
    aggregate_named,
)
from weft.sql.refuse import Source
from weft.sql.tokens import Token, Tokens, closing, is_call


def screen(source: Source, tokens: Tokens, *, aggregates: str | None = None) -> None:
    """Refuse what weft cannot serve in these tokens; `aggregates` says where they are, if none may be there."""
    for i, token in enumerate(tokens):
        if token.upper == "SELECT" and not (i and tokens[i - 1].text == "."):
            raise source.refuse(
                token.start, tokens[-1].end, "a subquery would have to be answered before each row is read.",
                "Compute it before, and compare with its result, or hand weft the joined stream.",
            )  # fmt: skip
        if token.text == "?" or (token.text == ":" and not (i and _ends_operand(tokens[i - 1]))):
            reason = "this query has a parameter without a value."
            raise source.refuse(token.start, token.end, reason, "Write the value itself.")
        if is_call(tokens, i):
            _screen_call(source, tokens, i, aggregates)
        elif token.kind == "word" and token.name in BARE_NONDETERMINISTIC and not (i and tokens[i - 1].text == "."):
            raise _varies(source, token.start, token.end, token.text)


def _ends_operand(token: Token) -> bool:
    return token.kind == "quoted" or (token.kind == "word" and token.upper not in KEYWORDS) or token.text in (")", "]")


def _screen_call(source: Source, tokens: Tokens, i: int, aggregates: str | None) -> None:
    name, end = tokens[i].name, min(closing(tokens, i + 1), len(tokens) - 1)
    start, stop, text = tokens[i].start, tokens[end].end, canonical(tokens[i : end + 1])
    after = [t.upper for t in tokens[end + 1 : end + 4]]
    if "OVER" in after[:1] or (after[1:] == ["NULLS", "OVER"]) or name in RANKINGS:
        raise source.refuse(
            start, stop, f"{text} is computed over the rows around each row, which partial results do not have.",
            f"Use {name}() without OVER if a value for the whole window will do, or run this query outside weft."
            if aggregate_named(name) else "Run this query outside weft, or apply it to the answers.",
        )  # fmt: skip
    if name in NONDETERMINISTIC or (name == "unix_timestamp" and end == i + 2):
        raise _varies(source, start, stop, text)
    if name in GENERATORS:
        reason = f"{text} makes several rows from one before they are aggregated."
        raise source.refuse(start, stop, reason, "Do it on the stream before you hand it to weft.")
    if name == "session_window":
        reason = "a session's edges depend on the data, so no two queries can share slices of it."
        way_out = "Run this query outside weft, or use window(ts, '10 minutes') if fixed windows will do."
        raise source.refuse(start, stop, reason, way_out)
    if name in OTHER_AGGREGATES or aggregate_named(name):
        _screen_aggregate(source, tokens, i, end, aggregates)


def _screen_aggregate(source: Source, tokens: Tokens, i: int, end: int, aggregates: str | None) -> None:
    name, text = tokens[i].name, canonical(tokens[i : end + 1])
    start, stop = tokens[i].start, tokens[end].end
    if aggregates:
        way_out = {
            "WHERE": "Put the condition in HAVING.",
            "GROUP BY": "Group by columns of the stream.",
        }.get(aggregates, "Aggregate once: the arguments are expressions over the columns of the stream.")
        reason = f"{text} is known only when the window is complete, and cannot stand in {aggregates}."
        raise source.refuse(start, stop, reason, way_out)
    if name in KEEPS_ROWS:
        raise source.refuse(
            start, stop, f"{text} keeps every row, so its windows cannot be built from partial results.",
            "Run this query outside weft, or use collect_set, approx_top_k or count(DISTINCT ...) if less will do.",
        )  # fmt: skip
    if name in OTHER_AGGREGATES:
        served = sorted(name for name, aggregate in AGGREGATES.items() if not aggregate.spelling.shown)
        way_out = f"Use one of {', '.join(served)}, or run this query outside weft."
        raise source.refuse(start, stop, f"weft does not compute {name}.", way_out)
    inside = tokens[i + 2 : end]
    distinct = bool(inside) and inside[0].upper == "DISTINCT"
    spelling = AGGREGATES[aggregate_named(name) or name].spelling
    if distinct and spelling.repeats and not spelling.distinct:
        reason = f"{text} would have to keep every value of a window."
        way_out = f"Run this query outside weft, or use {name} without DISTINCT if repeated values may count."
        raise source.refuse(start, stop, reason, way_out)
    screen(source, inside, aggregates=f"the arguments of {name}")
    for words in (["WITHIN", "GROUP"], ["FILTER"]):
        opening = end + 1 + len(words)
        if [t.upper for t in tokens[end + 1 : opening + 1]] == [*words, "("]:
            end = closing(tokens, opening)
            screen(source, tokens[opening + 1 : end], aggregates=" ".join(words))


def _varies(source: Source, start: int, stop: int, text: str) -> Exception:
    reason = f"{text} gives another value each time, so a repeated batch would answer differently."
    return source.refuse(start, stop, reason, "Use a column of the stream or a constant.")
