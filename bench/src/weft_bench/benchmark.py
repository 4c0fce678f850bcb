"""A benchmark, its settings, and its report."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from weft.model import WeftError

if TYPE_CHECKING:
    from rich.console import Console

Row = dict[str, Any]
Say = Callable[[str], None]
"""Reports progress to the user."""


class BadSetting(WeftError):
    """A value that an option of a benchmark cannot have."""


@dataclass(frozen=True, slots=True)
class Report:
    """A run of a benchmark; the same values as a JSON object."""

    bench: str
    machine: Mapping[str, Any]
    settings: Mapping[str, Any]
    rows: Sequence[Row]
    summary: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """`settings` is a frozen dataclass whose fields are made by `option`; `run` takes one of them."""

    name: str
    about: str
    summary: Mapping[str, str]
    """The meaning of every name in the summary. Names never change: users and checks read them."""
    settings: type[Any]
    run: Callable[[Any, Say], Report]
    show: Callable[[Report, Console], None] | None = None
    """Prints a report for users, if a table of its rows is not enough."""


@dataclass(frozen=True, slots=True)
class SettingOption:
    """How a field of a benchmark's settings is written on the command line."""

    about: str
    default: Any
    quick: Any
    parse: Callable[[str], Any]
    metavar: str
    argument: bool = False
    """A required argument, by position."""


def option(
    default: Any,
    about: str,
    *,
    quick: Any = None,
    parse: Callable[[str], Any] | None = None,
    metavar: str = "N",
    argument: bool = False,
) -> Any:
    """A field of the settings; `quick` is its value under `--quick`, if that differs."""
    how = SettingOption(about, default, default if quick is None else quick, parse or positive, metavar, argument)
    return field(default=default, metadata={"option": how})


def flag(about: str) -> Any:
    """A boolean field of the settings."""
    return field(default=False, metadata={"option": SettingOption(about, False, False, bool, "")})


def options(settings: type[Any]) -> dict[str, SettingOption]:
    return {f.name: f.metadata["option"] for f in fields(settings)}


def make_settings(settings: type[Any], written: Mapping[str, str | bool | None], *, quick: bool) -> Any:
    """Settings from the command line; the others have their defaults, or their quick values."""
    values: dict[str, Any] = {}
    for name, how in options(settings).items():
        text = written.get(name)
        if isinstance(text, bool):
            values[name] = text
        elif text is not None:
            values[name] = how.parse(text)
        elif quick:
            values[name] = how.quick
    return settings(**values)


def positive(text: str) -> int:
    """An integer from 1 on; `2_000_000` and `2e6` are the same.

    >>> positive("2e6"), positive("20_000")
    (2000000, 20000)
    """
    try:
        value = float(text)
    except ValueError:
        raise BadSetting(f"{text!r} is not a number, such as 2000000 or 2e6") from None
    if value < 1 or value != int(value):
        raise BadSetting(f"{text!r} is not a whole number from 1 on")
    return int(value)


def part(text: str) -> float:
    """A number above 0, such as 0.5."""
    try:
        value = float(text)
    except ValueError:
        raise BadSetting(f"{text!r} is not a number, such as 30 or 0.5") from None
    if not 0 < value < math.inf:
        raise BadSetting(f"{text!r} is not a number above 0")
    return value


def integer(text: str) -> int:
    """An integer, such as a seed."""
    try:
        return int(text)
    except ValueError:
        raise BadSetting(f"{text!r} is not a whole number") from None


def numbers(text: str) -> tuple[int, ...]:
    """Ascending, without duplicates.

    >>> numbers("1,100,10,10")
    (1, 10, 100)
    """
    return tuple(sorted({positive(part.strip()) for part in text.split(",")}))


def words(text: str) -> tuple[str, ...]:
    """
    >>> words("duckdb, polars"), words("")
    (('duckdb', 'polars'), ())
    """
    return tuple(part.strip() for part in text.split(",") if part.strip())
