"""The command itself: which subcommands there are, and what happens when one of them refuses."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from weft.model import WeftError

COMMANDS: Mapping[str, str] = {
    "plan": "weft.cli.plan:plan",
    "generate": "weft.cli.generate:generate",
    "run": "weft.cli.run:run",
    "serve": "weft.cli.serve:serve",
    "add": "weft.cli.remote:add",
    "drop": "weft.cli.remote:drop",
    "pause": "weft.cli.remote:pause",
    "resume": "weft.cli.remote:resume",
    "list": "weft.cli.remote:list_queries",
    "ask": "weft.cli.remote:ask",
    "demo": "weft.cli.demo:demo",
    "calibrate": "weft.cli.calibrate:calibrate",
    "simulate": "weft.cli.simulate:simulate",
    "check": "weft.cli.check:check",
    "doctor": "weft.cli.doctor:doctor",
    "import": "weft.cli.import_:import_queries",
    "bench": "weft_bench.cli:bench",
}
"""Where each subcommand is, in the order of the help: imported when it is asked for, so that none waits for another."""

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
        listed = [name for name, at in COMMANDS.items() if not at.startswith("weft_bench") or find_spec("weft_bench")]
        return [*super().list_commands(ctx), *listed]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, name = COMMANDS[cmd_name].split(":")
        if module.startswith("weft_bench") and find_spec("weft_bench") is None:
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
