"""The window of a query: Spark's `window()` in GROUP BY, or CQL's `[RANGE 1 HOUR SLIDE 10 MINUTES]`."""

from __future__ import annotations

from dataclasses import dataclass

from weft.model import Window
from weft.model.acq import RefreshMode
from weft.sql.canonical import bare, canonical
from weft.sql.duration import duration, duration_text
from weft.sql.refuse import Source
from weft.sql.syntax_tree import Node
from weft.sql.tokens import Token, Tokens

_WRITE = "Write a length such as '10 minutes' or '1 hour 30 minutes', in weeks, days, hours, minutes, seconds or less."
_WORDS = ("RANGE", "WINDOW", "SLIDE", "OFFSET", "ON", "PRIORITY")
_CQL_FORM = "Write [RANGE 1 HOUR SLIDE 10 MINUTES], with OFFSET ... and ON column where they are needed."


@dataclass(frozen=True, slots=True)
class Windowing:
    window: Window
    event_time: str
    refresh: RefreshMode = "exact"
    priority: int = 0

    @property
    def sql(self) -> str:
        """As a call of Spark's `window()`."""
        w = self.window
        lengths = [w.length] + [w.slide] * (w.slide != w.length or w.offset != 0) + [w.offset] * (w.offset != 0)
        return f"window({self.event_time}, {', '.join(repr(duration_text(n)) for n in lengths)})"


@dataclass(frozen=True, slots=True)
class _Length:
    """A duration, and its position in the text."""

    microseconds: int
    start: int
    end: int


def read_window(source: Source, node: Node) -> Windowing:
    """The window of a call of `window()`."""
    if node.kind != "call" or not 2 <= len(node.args) <= 4:
        raise source.refuse(
            node.start, node.end, "window() takes a time and a range, then perhaps a slide and an offset.",
            "Write window(ts, '1 hour'), or window(ts, '1 hour', '10 minutes', '5 minutes').",
        )  # fmt: skip
    if node.args[0].kind == "literal":
        time = node.args[0]
        raise source.refuse(time.start, time.end, "a constant gives every row the same time.", "Name the time column.")
    lengths = [_literal_length(source, arg) for arg in node.args[1:]]
    return Windowing(_checked(source, *lengths), canonical(bare(node.args[0].tokens)))


def _literal_length(source: Source, node: Node) -> _Length:
    tokens = node.tokens
    text = ""
    if node.kind == "literal" and node.name == "string":
        text = "".join(t.text.lstrip("rR")[1:-1] for t in tokens)
    elif node.kind == "literal" and node.name == "number":
        digits = "".join(t.text for t in tokens).upper().removesuffix("L")
        if digits.lstrip("+-").isdigit():
            return _Length(int(digits), node.start, node.end)
    else:
        reason = f"Spark wants the lengths of a window as literals, and {canonical(tokens)} is none."
        raise source.refuse(node.start, node.end, reason, _WRITE)
    return _length(source, text or canonical(tokens), node.start, node.end)


def _length(source: Source, text: str, start: int, end: int) -> _Length:
    try:
        return _Length(duration(text), start, end)
    except ValueError as error:
        raise source.refuse(start, end, f"{error}.", _WRITE) from None


def _checked(source: Source, length: _Length, slide: _Length | None = None, offset: _Length | None = None) -> Window:
    """The window, or a refusal as in Spark, which points to the wrong length."""
    if length.microseconds <= 0:
        reason = "a window must last longer than nothing."
        raise source.refuse(length.start, length.end, reason, "Give it a positive range.")
    step = slide or length
    if step.microseconds <= 0:
        reason = "a window must move on."
        raise source.refuse(step.start, step.end, reason, "Give it a positive slide.")
    if step.microseconds > length.microseconds:
        raise source.refuse(
            step.start, step.end,
            f"the slide ({duration_text(step.microseconds)}) is longer than the range "
            f"({duration_text(length.microseconds)}), which would leave rows that no window ever sees.",
            f"Slide by at most {duration_text(length.microseconds)}, or make the range longer.",
        )  # fmt: skip
    if offset and abs(offset.microseconds) >= step.microseconds:
        raise source.refuse(
            offset.start, offset.end,
            f"the offset ({duration_text(offset.microseconds)}) is not shorter than the slide "
            f"({duration_text(step.microseconds)}).",
            "Windows repeat with every slide: give the rest of the offset after whole slides.",
        )  # fmt: skip
    return Window(length.microseconds, step.microseconds, offset.microseconds if offset else 0)


def read_cql(source: Source, tokens: Tokens, event_time: str) -> Windowing:
    """The window between CQL's brackets."""
    parts = _cql_parts(source, tokens)
    if "ON" in parts:
        event_time = canonical(bare(parts["ON"][1]))
    written = {word: part for word, part in parts.items() if word not in ("ON", "PRIORITY")}
    lengths = {word: _cql_length(source, keyword, inside) for word, (keyword, inside) in written.items()}
    slide = lengths.get("SLIDE") or lengths.get("SLIDE AT MOST")
    window = _checked(source, lengths["RANGE"], slide, lengths.get("OFFSET"))
    refresh: RefreshMode = "at_most" if "SLIDE AT MOST" in lengths else "exact"
    return Windowing(window, event_time, refresh, _priority(source, *parts["PRIORITY"]) if "PRIORITY" in parts else 0)


def _priority(source: Source, keyword: Token, tokens: Tokens) -> int:
    text = canonical(tokens)
    if not text.isdigit():
        reason = f"a priority is a whole number from 0 on, and {text} is none."
        raise source.refuse(keyword.start, tokens[-1].end, reason, "Write PRIORITY 1; the greater comes first.")
    return int(text)


def _cql_parts(source: Source, tokens: Tokens) -> dict[str, tuple[Token, Tokens]]:
    """The parts by keyword, each with the token of the keyword and the tokens after it."""
    if tokens[0].upper not in ("RANGE", "WINDOW"):
        reason = "this is no window over time."
        if tokens[0].upper == "ROWS":
            reason = "a window of a number of rows has no edges in time, so no other query can share its slices."
        raise source.refuse(tokens[0].start, tokens[-1].end, reason, _CQL_FORM)
    parts: dict[str, tuple[Token, Tokens]] = {}
    at = 0
    while at < len(tokens):
        keyword, word = tokens[at], tokens[at].upper
        word, at = "RANGE" if word == "WINDOW" else word, at + 1
        if word == "SLIDE" and [t.upper for t in tokens[at : at + 2]] == ["AT", "MOST"]:
            word, at = "SLIDE AT MOST", at + 2
        if word in parts or {word, *parts} >= {"SLIDE", "SLIDE AT MOST"}:
            raise source.refuse(keyword.start, keyword.end, f"{keyword.text} stands twice in this window.", _CQL_FORM)
        begin = at
        while at < len(tokens) and tokens[at].upper not in _WORDS:
            at += 1
        parts[word] = (keyword, tokens[begin:at])
        if begin == at:
            raise source.refuse(keyword.start, keyword.end, f"nothing follows {keyword.text}.", _CQL_FORM)
    if "PRIORITY" in parts and "SLIDE AT MOST" not in parts:
        at_ = parts["PRIORITY"][0]
        reason = "this query is answered for every window, so a priority has no effect."
        raise source.refuse(at_.start, at_.end, reason, "Leave it out, or write SLIDE AT MOST ... PRIORITY ....")
    return parts


def _cql_length(source: Source, keyword: Token, tokens: Tokens) -> _Length:
    texts = [t.text[1:-1] if t.kind == "string" else t.text for t in tokens]
    if [t.upper for t in tokens] == ["UNBOUNDED"]:
        reason = "a window without a beginning never closes."
        raise source.refuse(keyword.start, tokens[-1].end, reason, _CQL_FORM)
    return _length(source, " ".join(texts), tokens[0].start, tokens[-1].end)
