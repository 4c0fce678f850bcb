"""`weft generate`: a workload as the papers draw them, as a file of queries."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

import typer

from weft.cli.plan import parse_rate
from weft.optimizer.paper_workloads import SLIDES, Shape, to_sql
from weft.optimizer.paper_workloads import generate as draw


def generate(
    number: Annotated[int, typer.Option(metavar="N", help="Queries.")] = 100,
    maximum_slide: Annotated[int, typer.Option(metavar="SECONDS", help="The longest slide.")] = 3600,
    maximum_overlap: Annotated[
        float, typer.Option(metavar="X", help="range / slide is uniform between 1 and this.")
    ] = 50,
    skew: Annotated[float, typer.Option(metavar="Z", help="Of Zipf: above 0, long slides are more frequent.")] = 0.6,
    slides: Annotated[
        str, typer.Option(metavar="NAME", help=f"Which slides there are up to the longest: {', '.join(SLIDES)}.")
    ] = "factors",
    rate: Annotated[
        Fraction, typer.Option(parser=parse_rate, metavar="NUMBER", help="Rows per second, for the comment at the top.")
    ] = Fraction(100),
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same queries.")] = 1,
) -> None:
    """Print queries as the papers draw them, for `weft plan`."""
    shape = Shape(number, maximum_slide, rate, skew, maximum_overlap, slides, seed)
    typer.echo(
        f"-- {number} queries, {slides} slides to {maximum_slide} s, skew {skew:g}, overlap to {maximum_overlap:g}, "
        f"seed {seed}; plan them with --rate {rate}"
    )
    typer.echo(to_sql(draw(shape)), nl=False)
