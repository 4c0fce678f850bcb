"""Files and folders to queries: each query is parsed by weft, and each refusal has file and line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

from weft.model import SqlError
from weft.sql.extract.extracted import ExtractedQuery, Imported, Skipped
from weft.sql.extract.script import Script
from weft.sql.parse import parse
from weft.sql.refuse import Refused, Source
from weft.sql.tokens import Token, tokenize

SUFFIXES = (".sql", ".py")


class NothingToImport(SqlError):
    """There is no file that could have a query."""


def collect(paths: Iterable[Path]) -> Imported:
    queries: list[ExtractedQuery] = []
    skipped: list[Skipped] = []
    for file in _files(paths):
        try:
            text = file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            skipped.append(Skipped(str(file), 1, f"cannot be read: {error}"))
            continue
        for one in _sql(text, str(file), 1, None) if file.suffix == ".sql" else _python(text, str(file)):
            if isinstance(one, ExtractedQuery):
                queries.append(one)
            else:
                skipped.append(one)
    return Imported(tuple(_named(queries)), tuple(skipped))


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            inside = sorted(f for f in path.rglob("*") if f.suffix in SUFFIXES and f.is_file())
            yield from (f for f in inside if not any(part.startswith(".") for part in f.relative_to(path).parts))
        elif path.is_file() and path.suffix in SUFFIXES:
            yield path
        else:
            raise NothingToImport(f"{path} is not a folder, a .sql file or a .py file; name one of these")


def _sql(text: str, file: str, line: int, name: str | None) -> Iterator[ExtractedQuery | Skipped]:
    """Statement by statement: an error in one does not affect the others."""
    source = Source(text)
    try:
        tokens = tokenize(source)
    except Refused as error:
        yield Skipped(file, line + error.line - 1, f"{error.reason} {error.way_out}")
        return
    for group in _statements(tokens):
        at = line + source.line_column(group[0].start)[0] - 1
        yield _checked(ExtractedQuery(name or "", text[group[0].start : group[-1].end], file, at))


def _statements(tokens: Iterable[Token]) -> Iterator[list[Token]]:
    group: list[Token] = []
    for token in tokens:
        if token.text != ";":
            group.append(token)
        elif group:
            yield group
            group = []
    if group:
        yield group


def _python(text: str, file: str) -> Iterator[ExtractedQuery | Skipped]:
    script = Script()
    try:
        script.read(text)
    except SyntaxError as error:
        yield Skipped(file, error.lineno or 1, f"this is not Python: {error.msg}")
        return
    except RecursionError:
        yield Skipped(file, 1, "this is nested too deeply to be read")
        return
    for line, sql, name in script.texts:
        if re.search(r"\bwindow\s*\(|\[\s*range\b", sql, re.IGNORECASE):
            yield from _sql(sql, file, line, name)
    for made in script.aggregations:
        if made.stands:
            yield _checked(ExtractedQuery(made.name or "", made.frame.sql(), file, made.line, notes=made.frame.notes))
    yield from (Skipped(file, stop.line, stop.reason) for stop in script.broken)


def _checked(query: ExtractedQuery) -> ExtractedQuery | Skipped:
    try:
        (acq,) = parse(query.sql, name=query.name or "q")
    except Refused as error:
        within = error.line - 1 if query.file.endswith(".sql") else 0
        return Skipped(query.file, query.line + within, f"{error.reason} {error.way_out}")
    named = "" if acq.name == "q" else acq.name
    return replace(query, name=named, sql=acq.spark_sql, event_time=acq.event_time, source=acq.source)


def _named(queries: Iterable[ExtractedQuery]) -> Iterator[ExtractedQuery]:
    """The queries with unique names."""
    taken: set[str] = set()
    for one in queries:
        wanted = one.name or f"{_word(Path(one.file).stem)}_{one.line}"
        tried = (wanted if i == 1 else f"{wanted}_{i}" for i in count(1))
        name = next(t for t in tried if t.lower() not in taken)
        taken.add(name.lower())
        yield replace(one, name=name)


def _word(text: str) -> str:
    word = re.sub(r"\W", "_", text)
    return f"_{word}" if word[:1].isdigit() else word
