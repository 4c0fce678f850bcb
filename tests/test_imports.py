"""Imports go one way: no cycle between modules, also none through TYPE_CHECKING or an import inside a function."""

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {"weft": ROOT / "src", "weft_bench": ROOT / "bench" / "src"}

SPARK_LAYERS = (
    ("job", "run"),
    ("adhoc",),
    ("execution",),
    ("queries",),
    ("capture",),
    ("partial", "final"),
    ("physical",),
    ("checkpoint",),
    ("sinks", "sources"),
    ("connectors", "session", "keywords", "options", "errors", "files", "logs", "sql_types", "worker"),
)
"""The rooms of `weft.spark`: each imports from rooms below its own alone, and from itself."""


def modules() -> dict[str, Path]:
    """The file of each module, by its name."""
    files = {path: source for name, source in PACKAGES.items() for path in (source / name).rglob("*.py")}
    return {
        ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): path
        for path, source in files.items()
    }


def imported(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """The modules that a file names in any import, wherever it stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            submodules = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from submodules & known.keys()
            if submodules - known.keys():
                yield node.module


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    known = modules()
    return {name: set(imported(path, known)) - {name} for name, path in known.items()}


def test_no_module_imports_itself_through_others(graph: dict[str, set[str]]) -> None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def test_rooms_of_spark_import_from_rooms_below(graph: dict[str, set[str]]) -> None:
    layer = {room: number for number, rooms in enumerate(SPARK_LAYERS) for room in rooms}

    def room(module: str) -> str | None:
        parts = module.split(".")
        return parts[2] if parts[:2] == ["weft", "spark"] and len(parts) > 2 else None

    upward = []
    for module, targets in graph.items():
        here = room(module)
        for target in sorted(targets):
            there = room(target)
            if here is None or there is None or here == there:
                continue
            if here not in layer or there not in layer or layer[here] > layer[there]:
                upward.append(f"{module} imports {target}")
    assert upward == []
