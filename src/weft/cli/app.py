"""The command itself: which subcommands there are, and what happens when one of them refuses."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from weft.cli.calibrate import calibrate
from weft.cli.check import check
from weft.cli.demo import demo
from weft.cli.doctor import doctor
from weft.cli.generate import generate
from weft.cli.import_ import import_queries
from weft.cli.plan import plan
from weft.cli.remote import add, ask, drop, list_queries
from weft.cli.run import run
from weft.cli.serve import serve
from weft.cli.simulate import simulate
from weft.model import WeftError

BENCH = "bench"

REFUSED = 2
"""The exit code of everything that weft refuses, the same as for a wrong option."""


class Commands(TyperGroup):
    """Subcommands whose `WeftError`s end here: message to stderr, no traceback unless `--debug` stands somewhere.

    Benchmarks are read when one is asked for: `weft plan` need not wait for them.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), BENCH]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name != BENCH:
            return super().get_command(ctx, cmd_name)
        from weft.cli.bench import bench

        found = get_command(bench)
        found.name = BENCH
        return found

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # It is after a command failed that one wants `--debug`, so it may stand at the end of the line as well.
        if "--debug" in args:
            args = ["--debug", *(a for a in args if a != "--debug")]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except WeftError as error:
            if ctx.params["debug"]:
                raise
            typer.echo(str(error), err=True)
            raise typer.Exit(REFUSED) from None


app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"weft {version('weft')}")
        raise typer.Exit


@app.callback()
def weft(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Hundreds of windowed aggregate queries over one stream, woven into one Spark job."""


app.command()(plan)
app.command()(generate)
app.command()(run)
app.command()(serve)
app.command()(add)
app.command()(drop)
app.command("list")(list_queries)
app.command()(ask)
app.command()(demo)
app.command()(calibrate)
app.command()(simulate)
app.command()(check)
app.command()(doctor)
app.command("import")(import_queries)


def main() -> None:
    app(prog_name="weft")
