"""The command itself: which subcommands there are, and what happens when one of them refuses."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_command

from weft.model import WeftError


class Subcommand(NamedTuple):
    """Where a subcommand is defined, and its line in `weft --help`."""

    module: str
    function: str
    help: str


COMMANDS: Mapping[str, Subcommand] = {
    "plan": Subcommand("weft.cli.plan", "plan", "Show which queries would share work, and what that costs."),
    "generate": Subcommand("weft.cli.generate", "generate", "Print queries as the papers draw them."),
    "run": Subcommand("weft.cli.run", "run", "Answer the queries over a stream."),
    "serve": Subcommand("weft.cli.serve", "serve", "Answer the queries over a stream, and serve them over HTTP."),
    "add": Subcommand("weft.cli.remote", "add", "Add queries to a running service."),
    "drop": Subcommand("weft.cli.remote", "drop", "Drop queries of a running service."),
    "pause": Subcommand("weft.cli.remote", "pause", "Pause queries of a running service."),
    "resume": Subcommand("weft.cli.remote", "resume", "Resume paused queries."),
    "list": Subcommand("weft.cli.remote", "list_queries", "List the queries of a running service."),
    "ask": Subcommand("weft.cli.remote", "ask", "Answer a query once, from the state of a running service."),
    "demo": Subcommand("weft.cli.demo", "demo", "A hundred queries over a live stream of trades."),
    "calibrate": Subcommand("weft.cli.calibrate", "calibrate", "Measure this machine."),
    "simulate": Subcommand(
        "weft.cli.simulate", "simulate", "Plan queries and say how busy each node of a cluster would be."
    ),
    "check": Subcommand("weft.cli.check", "check", "Check a checkpoint."),
    "doctor": Subcommand("weft.cli.doctor", "doctor", "Check whether everything that weft needs is installed."),
    "import": Subcommand("weft.cli.import_", "import_queries", "Find window queries in SQL files and PySpark code."),
    "bench": Subcommand("weft_bench.cli", "bench", "Measure weft and its rivals in the same run."),
}
"""In the order of the help. A module is imported when its command is called, and for the help none is."""

NO_BENCH = (
    "the benchmarks are a package of their own, weft-bench, which is not installed here; "
    "in a checkout of weft `make setup` installs it"
)


class NotInstalled(WeftError):
    """A subcommand whose package is missing."""


REFUSED = 2
"""The exit code of everything that weft refuses, the same as for a wrong option."""


class Commands(TyperGroup):
    """Subcommands whose `WeftError`s end here: message to stderr, no traceback unless `--debug` stands somewhere."""

    def list_commands(self, ctx: Any) -> list[str]:
        bench = find_spec("weft_bench") is not None
        return [*super().list_commands(ctx), *(name for name in COMMANDS if bench or name != "bench")]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        lines = {name: command.help for name, command in COMMANDS.items()}
        lines |= {name: command.get_short_help_str() for name, command in self.commands.items()}
        with formatter.section("Commands"):
            formatter.write_dl([(name, lines[name]) for name in self.list_commands(ctx)])

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, name, _ = COMMANDS[cmd_name]
        if cmd_name == "bench" and find_spec("weft_bench") is None:
            raise NotInstalled(NO_BENCH)
        command_or_app = getattr(import_module(module), name)
        if not isinstance(command_or_app, typer.Typer):
            alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
            alone.command(cmd_name)(command_or_app)
            command_or_app = alone
        command = get_command(command_or_app)
        command.name = cmd_name
        return command

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
        from importlib.metadata import version

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


def main() -> None:
    app(prog_name="weft")
