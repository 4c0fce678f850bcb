"""Functions that take options as keyword arguments: each field of `JobOptions`, also under its earlier name."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from weft.spark.options import RENAMED, BadOptions, JobOptions, UnknownOption, options_text

P = ParamSpec("P")
First = TypeVar("First")
Second = TypeVar("Second")
Result = TypeVar("Result")


def with_keywords(
    name: str, function: Callable[[First, Second, JobOptions], Result], options: Callable[P, JobOptions]
) -> Callable[Concatenate[First, Second, P], Result]:
    """The function as one that takes each of the `JobOptions` as a keyword argument.

    Type checkers and editors see the names, types and defaults of the fields; `help()` also shows their text.
    """
    leading = list(inspect.signature(function).parameters.values())[:2]
    signature = inspect.Signature([*leading, *inspect.signature(options).parameters.values()])

    def call(*args: Any, **kwargs: Any) -> Result:
        kwargs = current_names(kwargs, RENAMED)
        for unknown in kwargs.keys() - signature.parameters:
            raise UnknownOption(f"{name} has no option {unknown!r}; {_nearest(unknown, list(signature.parameters))}")
        arguments = signature.bind(*args, **kwargs).arguments
        first, second = (arguments.pop(parameter.name) for parameter in leading)
        return function(first, second, JobOptions(**arguments))

    call.__name__, call.__qualname__, call.__module__ = name, name, function.__module__
    call.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\n{options_text()}"
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def renamed(**names: str) -> Callable[[Callable[P, Result]], Callable[P, Result]]:
    """A decorator for a function whose keyword arguments had other names: `renamed(old="new")` accepts both.

    The earlier name gives a warning.
    """

    def wrap(function: Callable[P, Result]) -> Callable[P, Result]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> Result:
            return function(*args, **current_names(kwargs, names))

        return call

    return wrap


def current_names(arguments: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The arguments under their current names; `names` has the current name of each earlier one.

    >>> current_names({"rate": 5}, {"retain": "retention"})
    {'rate': 5}
    """
    current: dict[str, Any] = {}
    for name, value in arguments.items():
        if name in names:
            # The caller of the function that was called with keywords.
            warnings.warn(f"{name}= is deprecated; use {names[name]}=", DeprecationWarning, stacklevel=3)
        if names.get(name, name) in current or (name in names and names[name] in arguments):
            raise BadOptions(f"{names.get(name, name)} is given twice; leave its earlier name out")
        current[names.get(name, name)] = value
    return current


def _nearest(name: str, names: list[str]) -> str:
    """
    >>> _nearest("watermak", ["watermark", "late"]), _nearest("x", ["watermark", "late"])
    ("did you mean 'watermark'?", 'choose from watermark, late')
    """
    near = get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(names)}"
