"""`weft demo`: the options. Not part of the command yet: `app.py` registers it once the pipeline can be started."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.run import parse_seconds


def demo(
    seconds: Annotated[
        float, typer.Option("--for", parser=parse_seconds, metavar="TIME", help="How long, such as 30s.")
    ] = 30.0,
    seed: Annotated[int, typer.Option(help="Of the trades; the same seed brings the same trades.")] = 1,
) -> None:
    """A hundred queries over a live stream of trades, and what sharing saves."""
    raise NotImplementedError
