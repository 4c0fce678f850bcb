"""Pages and diagrams that are written from the code: techniques and optimizers, SQL, the API, the import layers.

`make docs` writes them, and a test compares them with the code.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import weft
from tools import diagrams
from weft.aggregates import AGGREGATES, BUILT_IN, Algebra, keeps_values
from weft.aggregates.aggregate import ALIASES
from weft.aggregates.operators import ALGEBRAS, NEEDS, OWN, accepts
from weft.kernels.techniques import blocks, prefix
from weft.kernels.techniques.registry import TECHNIQUES
from weft.model import Call
from weft.optimizer.edge_counting import COUNTERS
from weft.optimizer.phantoms import CHOOSERS
from weft.optimizer.phantoms.allocation import ALLOCATIONS
from weft.optimizer.phantoms.greedy_space import greedy_by_space
from weft.optimizer.placement import OPTIMIZERS, knee
from weft.optimizer.strategies import STRATEGIES
from weft.schedule import POLICIES, policies
from weft.spark import Job, Run, open_source
from weft.spark.physical.settings import SETTINGS
from weft.spark.session import local_session
from weft.sql.functions import CASTS, GENERATORS, KEEPS_ROWS, NONDETERMINISTIC, RANKINGS, SCALARS

DOCS = Path(__file__).parents[1] / "docs"
SHIPPED = sorted(BUILT_IN)
"""Not those that somebody has registered since."""

WRITTEN = "<!-- Generated from the code by `make docs`: change the docstrings, not this page. -->"


def main() -> None:
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """Each page by its file."""
    return {
        "cards.md": _page(_cards()),
        "sql.md": _filled((DOCS / "sql.md").read_text()),
        "api.md": _page(_api()),
        "pictures/row-to-answer.svg": diagrams.row_to_answer(),
        "pictures/layers.svg": diagrams.layers(),
    }


def _page(parts: Iterable[str]) -> str:
    title, *rest = parts
    return "\n\n".join([title, WRITTEN, *rest]).rstrip() + "\n"


# Cards


def _cards() -> Iterator[str]:
    yield "# Techniques and optimizers"
    yield (
        "What each one requires, what it costs, and where it comes from. [How sharing is decided](sharing.md) says "
        "when each is used; [the papers' figures](figures.md) compares them."
    )
    yield "## Techniques: windows from slices"
    yield (
        "`weave(technique=...)` or `weft plan --technique NAME`; `auto` takes the fastest measured technique for each "
        "operator. `n` is the number of slices per window."
    )
    for name, recipe in TECHNIQUES.items():
        yield f"### {name}"
        yield from _prose(inspect.getmodule(recipe.make))
        yield _card(recipe.make)
        yield _serves(name)
    for name, module in (("blocks", blocks), ("prefix", prefix)):
        yield f"### {name}"
        yield "weft's own."
        yield from _prose(module)
        yield _serves(name)
    yield "## Strategies: which queries share a tree"
    yield "`weave(strategy=...)` or `weft plan --strategy NAME`."
    yield from _families(STRATEGIES)
    yield "## Counters: how many slices a tree has"
    yield from _families(COUNTERS)
    yield "## Phantoms: which finer groupings are kept"
    yield from _families({**CHOOSERS, "gp": greedy_by_space})
    yield "### Dividing memory"
    yield from _families(ALLOCATIONS, level=4)
    yield "## Placement: which node runs which trees"
    yield "By the names of the dissertation's table 7: `g` groups, `w` weaves, `wg` does either."
    yield from _families({**OPTIMIZERS, "knee": knee})
    yield "## Schedules: when queries with SLIDE AT MOST are answered"
    yield from _prose(policies)
    rows = [[name, _first(policy.split), _first(policy.reach)] for name, policy in POLICIES.items()]
    yield _table(["policy", "queries that may run together", "queries that run with one that is due"], rows)


def _first(function: Callable[..., Any]) -> str:
    """The first paragraph of what a function says of itself, or its name in words."""
    return " ".join((inspect.getdoc(function) or function.__name__.replace("_", " ")).split("\n\n")[0].split())


def _families(members: Mapping[str, Callable[..., Any]], level: int = 3) -> Iterator[str]:
    """Members of one file stand together, under what it says of itself."""
    by_module: dict[ModuleType, list[str]] = {}
    for name, member in members.items():
        module = inspect.getmodule(member)
        assert module is not None
        by_module.setdefault(module, []).append(name)
    for module, names in by_module.items():
        yield f"{'#' * level} {', '.join(names)}"
        yield from _prose(module)


def _prose(module: ModuleType | None) -> Iterator[str]:
    """What a module says of itself, without its examples; what is set in columns stays so."""
    text = inspect.getdoc(module) or ""
    for paragraph in text.split("\n\n"):
        if not paragraph.lstrip().startswith(">>>"):
            yield _text(paragraph)


def _text(paragraph: str) -> str:
    lines = paragraph.split("\n")
    if lines[0].startswith("- "):
        return paragraph
    if any(re.search(r"\S {2,}\S|^ {2,}\S", line) for line in lines):
        return "\n".join(["```", *inspect.cleandoc(paragraph).split("\n"), "```"])
    return " ".join(lines)


def _card(member: Callable[..., Any]) -> str:
    """The lines of a docstring that say what is required, what it costs, how much it keeps and where it is from."""
    line = r"^(requires|cost|space|source)\s{2,}(.+(?:\n {6,}.+)*)"
    found = re.findall(line, inspect.getdoc(member) or "", re.MULTILINE)
    assert [word for word, _ in found] == ["requires", "cost", "space", "source"], member
    return _table(["", ""], [[word, " ".join(said.split())] for word, said in found])


def _serves(technique: str) -> str:
    served = [operator for operator in ALGEBRAS if accepts(technique, operator)]
    asked = "" if technique in OWN else f"what is {_algebra(NEEDS[technique])}: "
    return f"Serves {asked}{_listed(served)}."


def _algebra(algebra: Algebra) -> str:
    return " and ".join(str(part.name).lower() for part in algebra)


# SQL


def _filled(page: str) -> str:
    """A page written by hand, with what the code knows between its marks."""
    found = {"aggregates": _aggregates, "scalars": _scalars, "refused": _refused, "settings": _settings}

    def fill(mark: re.Match[str]) -> str:
        return f"<!-- from the code: {mark[1]} -->\n{found[mark[1]]()}\n<!-- end -->"

    return re.sub(r"<!-- from the code: (\w+) -->\n.*?<!-- end -->", fill, page, flags=re.DOTALL)


def _aggregates() -> str:
    names: dict[str, list[str]] = {}
    for alias, name in ALIASES.items():
        names.setdefault(name, []).append(alias)
    rows = [[f"`{_signature(name)}`", _listed(names.get(name, [])), _kept(name), _answer(name)] for name in SHIPPED]
    return _table(["aggregate", "also written", "keeps", "answer"], rows)


def _scalars() -> str:
    return f"{_listed(SCALARS)}; casts by name: {_listed(CASTS)}."


def _settings() -> str:
    rows = [[f"`{s.name}`", _listed(s.served), s.queries[0].upper() + s.queries[1:], s.way_out] for s in SETTINGS]
    return _table(["setting", "all queries are served with", "with another value, weft refuses", "way out"], rows)


def _refused() -> str:
    return "\n".join(
        [
            "- Joins, subqueries, set operations, ORDER BY, LIMIT, SELECT DISTINCT, CUBE, ROLLUP, GROUPING SETS.",
            f"- Aggregates that keep every row: {_listed(KEEPS_ROWS)}.",
            f"- Window functions: OVER, {_listed(RANKINGS)}.",
            f"- Non-deterministic functions: {_listed(NONDETERMINISTIC)}.",
            f"- Generators, which make several rows from one: {_listed(GENERATORS)}.",
            "- `session_window`: its edges depend on the data, so no two queries can share slices of it.",
        ]
    )


WRITTEN_SO = {
    "count": "count(*), count(x, ...)",
    "count_distinct": "count(DISTINCT x, ...)",
    "percentile": "percentile(x, share)",
    "percentile_disc": "percentile_disc(share) WITHIN GROUP (ORDER BY x)",
    "percentile_descending": "percentile_cont(share) WITHIN GROUP (ORDER BY x DESC)",
    "percentile_disc_descending": "percentile_disc(share) WITHIN GROUP (ORDER BY x DESC)",
    "percentile_approx": "percentile_approx(x, share[, accuracy])",
    "approx_count_distinct": "approx_count_distinct(x[, deviation])",
    "approx_top_k": "approx_top_k(x[, k[, tracked]])",
    "histogram_numeric": "histogram_numeric(x, bins)",
    "top_k_sum": "top_k_sum(item, measure[, k])",
    "first": "first(x[, ignore_nulls])",
    "last": "last(x[, ignore_nulls])",
    **{name: f"{name}(y, x)" for name in AGGREGATES if name.startswith("regr_")},
}
"""Where letters would not do."""


def _signature(name: str) -> str:
    least, most = AGGREGATES[name].arity
    assert name in WRITTEN_SO or least == most, name
    return WRITTEN_SO.get(name) or f"{name}({', '.join('xyz'[:least])})"


def _kept(name: str) -> str:
    least = max(1, AGGREGATES[name].arity[0])
    numbered = name.startswith("percentile") or name == "histogram_numeric"
    arguments = ("x", "0.5") if numbered else tuple("xyz"[:least])
    kinds = dict.fromkeys(c.kind for c in AGGREGATES[name].components(Call(name, arguments), {"x": "double"}))
    return ", ".join(kinds)


def _answer(name: str) -> str:
    if name == "histogram_numeric":
        return "bins of the window's values, by a sketch; Spark's if every value has its own bin"
    if name == "top_k_sum":
        return "the first k of Spark's GROUP BY item, floats to 1e-9 relative"
    if keeps_values(Call(name)):
        return "within Spark's bounds, by a sketch" if "approx" in name else "Spark's"
    exact = {"count", "max", "min", "bit_and", "bit_or", "bit_xor", "max_by", "min_by"}
    return "Spark's" if _kept(name) in exact else "Spark's, floats to 1e-9 relative"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


# API


def _api() -> Iterator[str]:
    yield "# API reference"
    yield "[Ten minutes](index.md) shows an example. Every error that weft raises is a `weft.WeftError`."
    for name in ("weave", "optimize", "parse", "explain", "register"):
        yield from _function(f"weft.{name}", getattr(weft, name))
    yield "## Job"
    yield _described(Job)
    yield from _methods("job", Job)
    yield "## Run"
    yield _described(Run)
    yield from _methods("run", Run)
    yield "## Errors"
    yield "All of them are in `weft`; each class below `WeftError` stands for one stage of the work."
    yield _table(["class", "raised for"], [[f"`{error.__name__}`", _described(error)] for error in _errors()])
    yield "## Sessions and sources"
    yield from _function("weft.spark.local_session", local_session)
    yield from _function("weft.spark.open_source", open_source)


def _errors() -> Iterator[type[weft.WeftError]]:
    yield weft.WeftError
    yield from (weft.SqlError, weft.PlanError, weft.CheckpointError, weft.SourceError, weft.SinkError, weft.RunError)


def _methods(before: str, of: type) -> Iterator[str]:
    for name, member in vars(of).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            yield f"### {before}.{name}"
            yield _described(member)
        elif inspect.isfunction(member):
            yield from _function(f"{before}.{name}", member, level=3)


def _function(name: str, function: Callable[..., Any], level: int = 2) -> Iterator[str]:
    yield f"{'#' * level} {name}"
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
    yield "```\n" + _call(name, parameters) + "\n```"
    yield _described(function)


def _call(name: str, parameters: list[inspect.Parameter]) -> str:
    """As it is written, without types: they are in the code, and in any editor."""
    words: list[str] = []
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in words and not any(w.startswith("*") for w in words):
            words.append("*")
        star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        words.append(f"{star}{parameter.name}{default}")
    line = f"{name}({', '.join(words)})"
    return line if len(line) <= 110 else f"{name}(\n    " + ",\n    ".join(words) + ",\n)"


def _described(member: Any) -> str:
    text = inspect.getdoc(member)
    assert text, f"{member} says nothing of itself"
    kept = [p for p in text.split("\n\n") if not p.lstrip().startswith(">>>")]
    return "\n\n".join(map(_text, kept))


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


if __name__ == "__main__":
    main()
