"""Notebooks without Jupyter: their cells are run one after another, and what they show can be written into them.

    python tests/docs/notebooks.py examples/*.ipynb       runs them and keeps what they show
"""

from __future__ import annotations

import ast
import io
import json
import os
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any


def run_notebook(path: Path) -> dict[str, Any]:
    """The notebook with the outputs of this run; its names live as long as it does."""
    book = json.loads(path.read_text())
    names: dict[str, Any] = {"__name__": "__main__"}
    number = 0
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            number += 1
            cell["execution_count"] = number
            cell["outputs"] = _outputs("".join(cell["source"]), f"{path.name}, cell {number}", names, number)
    return book


def _outputs(source: str, where: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    body = ast.parse(source, where)
    last = body.body.pop() if body.body and isinstance(body.body[-1], ast.Expr) else None
    printed, shown = io.StringIO(), None
    with redirect_stdout(printed):
        exec(compile(body, where, "exec"), names)
        if isinstance(last, ast.Expr):
            shown = eval(compile(ast.Expression(last.value), where, "eval"), names)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue().splitlines(keepends=True)})
    if shown is not None:
        data = {"text/plain": repr(shown).splitlines(keepends=True)}
        html = getattr(shown, "_repr_html_", lambda: None)()
        if html is not None:
            data["text/html"] = html.splitlines(keepends=True)
        found.append({"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data})
    return found


def main(paths: list[str]) -> None:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as whole:
        for path in [Path(name).resolve() for name in paths]:
            folder = Path(whole) / path.stem
            folder.mkdir()
            os.chdir(folder)  # it stays: Spark's Python workers begin where the first of them did
            book = run_notebook(path)
            path.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n")
            print(path.name)
        os.chdir(before)


if __name__ == "__main__":
    main(sys.argv[1:])
