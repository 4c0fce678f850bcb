"""A class that calls itself frozen holds nothing that its methods, or anybody else, could change in place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MUTABLE = {"dict", "list", "set", "defaultdict", "deque", "Counter", "bytearray", "Lock"}


def _frozen_classes(source: str) -> Iterator[ast.ClassDef]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            arguments = [k for d in node.decorator_list if isinstance(d, ast.Call) for k in d.keywords]
            if any(k.arg == "frozen" and ast.unparse(k.value) == "True" for k in arguments):
                yield node


def _mutable_fields(source: str) -> list[str]:
    return [
        f"{definition.name}.{ast.unparse(field.target)}"
        for definition in _frozen_classes(source)
        for field in definition.body
        if isinstance(field, ast.AnnAssign)
        and MUTABLE & {n.id for n in ast.walk(field.annotation) if isinstance(n, ast.Name)}
        and not ast.unparse(field.annotation).startswith(("ClassVar", "Callable"))
    ]


def test_a_mutable_field_is_seen() -> None:
    source = "@dataclass(frozen=True)\nclass A:\n    kept: dict[str, int]\n    names: tuple[str, ...]\n"
    assert _mutable_fields(source) == ["A.kept"]
    assert _mutable_fields(source.replace("True", "False")) == []


@pytest.mark.parametrize("package", ["src/weft", "bench/src/weft_bench"])
def test_frozen_classes_have_no_mutable_field(package: str) -> None:
    modules = {path: path.read_text() for path in (ROOT / package).rglob("*.py")}
    fields = {f"{path.relative_to(ROOT)}: {field}" for path, text in modules.items() for field in _mutable_fields(text)}
    assert sum(1 for text in modules.values() for _ in _frozen_classes(text)) > 10
    assert fields == set()
