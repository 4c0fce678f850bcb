"""`weft bench`: the options. Not part of the command yet: `app.py` registers it once there is a benchmark."""

from __future__ import annotations

from typing import Annotated

import typer


def bench(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Which one; --list shows them.")] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the benchmarks.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Less data: done in under a minute.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure weft and its rivals in the same run."""
    raise NotImplementedError
