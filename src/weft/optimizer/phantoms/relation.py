"""A relation: the attributes that rows are grouped by, and how it is written.

Attributes of one letter stand side by side, as in the paper; any other names stand in brackets, with commas between
them, and in backticks where they are more than letters, digits, `_` and `.`:

>>> [show(read(text)) for text in ("BA", "[src_port,dst]", "[A,`coalesce(a, b)`]", "[]")]
['AB', '[dst,src_port]', '[A,`coalesce(a, b)`]', '[]']
"""

from __future__ import annotations

import re

from weft.model import PlanError

Relation = frozenset[str]
"""The empty one has a single group: everything."""

_PLAIN = re.compile(r"[\w.]+")
_QUOTED = re.compile(r"`((?:[^`]|``)*)`")


class InvalidNotation(PlanError):
    """A text that is no relation or no configuration."""


def show(relation: Relation) -> str:
    names = sorted(relation)
    if names and all(len(name) == 1 and name.isalpha() for name in names):
        return "".join(names)
    return f"[{','.join(map(_show_name, names))}]"


def _show_name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else f"`{name.replace('`', '``')}`"


def order(relation: Relation) -> tuple[str, ...]:
    """Relations are listed by their attributes: `AB` comes before `B`."""
    return tuple(sorted(relation))


def read(text: str) -> Relation:
    relation, end = read_at(text, 0)
    if end != len(text):
        raise refuse(text, end, "one relation ends here and something follows")
    return relation


def read_at(text: str, place: int) -> tuple[Relation, int]:
    """The relation that begins at `place`, and where it ends."""
    if text[place : place + 1] == "[":
        return _read_names(text, place + 1)
    end = place
    while end < len(text) and text[end].isalpha():
        end += 1
    if end == place:
        raise refuse(text, place, "a relation should begin here, such as AB or [src,dst]")
    return _distinct(text, place, list(text[place:end])), end


def _read_names(text: str, place: int) -> tuple[Relation, int]:
    begin, names = place, list[str]()
    if text[place : place + 1] == "]":
        return frozenset(), place + 1
    while True:
        if quoted := _QUOTED.match(text, place):
            names.append(quoted[1].replace("``", "`"))
            place = quoted.end()
        elif plain := _PLAIN.match(text, place):
            names.append(plain[0])
            place = plain.end()
        else:
            raise refuse(text, place, "an attribute should begin here; if it is no plain word, write it in backticks")
        if text[place : place + 1] == "]":
            return _distinct(text, begin, names), place + 1
        if text[place : place + 1] != ",":
            raise refuse(text, place, "a comma or a closing bracket should follow an attribute")
        place += 1


def _distinct(text: str, place: int, names: list[str]) -> Relation:
    if len(set(names)) < len(names):
        raise refuse(text, place, "an attribute is named twice; name each once")
    return frozenset(names)


def refuse(text: str, place: int, problem: str) -> InvalidNotation:
    return InvalidNotation(f"column {place + 1}: {problem}.\n    {text}\n    {' ' * place}^")
