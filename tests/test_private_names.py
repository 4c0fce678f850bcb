"""Tests go through public behaviour: none of them reads, imports or replaces a private name of what it tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

PROTOCOLS = {"_repr_html_", "_replace", "_asdict", "_fields"}
"""Public, though their names begin with an underscore: those of IPython and of named tuples."""

ALLOWED = {
    **{
        ("tests/kernels/test_cache.py", name): "numba tells the file of a kernel that is not compiled yet nowhere else"
        for name in ("_cache", "_cache_file", "_index_name", "_name")
    },
    ("tests/support/query_pool.py", "_jdf"): "PySpark runs an executed plan without a job nowhere else",
    ("tests/support/spark_functions.py", "_jsparkSession"): "PySpark lists Spark's functions without their classes",
    ("tests/support/spark_functions.py", "_jvm"): "PySpark lists Spark's functions without their classes",
}

BY_NAME = {"setattr", "delattr", "getattr", "hasattr"}
"""Functions, and methods of `monkeypatch`, whose arguments name an attribute."""


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PROTOCOLS


def private_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and the name of every private attribute, import and name in a string that something is patched by."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name("self" | "cls")):
                continue
            case ast.Attribute(attr=name):
                names = [name]
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                module = getattr(node, "module", None) or ""
                names = [part for alias in aliases for part in (*module.split("."), *alias.name.split("."))]
            case ast.Call(func=ast.Name(called) | ast.Attribute(attr=called), args=arguments) if called in BY_NAME:
                strings = [a.value for a in arguments[:2] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
                names = [part for string in strings for part in string.split(".")]
            case _:
                continue
        yield from ((node.lineno, name) for name in names if private(name))


def test_no_test_uses_a_private_name() -> None:
    files = sorted((ROOT / "tests").rglob("*.py"))
    assert len(files) > 200, "the tests are not where this test looks"
    uses = [
        (str(file.relative_to(ROOT)), line, name)
        for file in files
        for line, name in private_names(ast.parse(file.read_text()))
    ]
    assert [f"{file}:{line} {name}" for file, line, name in uses if (file, name) not in ALLOWED] == []
    assert ALLOWED.keys() <= {(file, name) for file, _, name in uses}, "these are allowed, and nobody uses them"


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("run._driver.stop()", ["_driver"]),
        ("runs()[0]._driver", ["_driver"]),
        ("Planner._optimize", ["_optimize"]),
        ("from weft.spark.run import _time", ["_time"]),
        ("from weft._private import name", ["_private"]),
        ("import weft._private", ["_private"]),
        ('monkeypatch.setattr(Planner, "_optimize", never)', ["_optimize"]),
        ('monkeypatch.setattr("weft.spark.run._time", never)', ["_time"]),
        ('getattr(run, "_driver")', ["_driver"]),
        ('self._driver, cls._made, run.__dict__, plan._repr_html_(), row._replace(x=1), "_name"', []),
        ('monkeypatch.setattr(module, "public", "_value")', []),
    ],
)
def test_private_names_are_found_in_attributes_imports_and_patches(code: str, names: list[str]) -> None:
    assert [name for _, name in private_names(ast.parse(code))] == names
