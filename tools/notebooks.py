"""Notebooks without Jupyter: their cells are run one after another, and what they show can be written into them.

python -m tools.notebooks examples/market.ipynb       runs it and keeps what it shows
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


def main(path: Path) -> None:
    """In a folder of its own, which the JVM begins in too: paths in a notebook are relative."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        book = run_notebook(path)
        os.chdir(path.parent)
    path.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
