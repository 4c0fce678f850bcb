"""`weft bench`: one command per benchmark of the registry, with options from the settings of the benchmark."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from weft_bench import BENCHMARKS, Benchmark
from weft_bench.benchmark import SettingOption, make_settings, options
from weft_bench.output.tables import show_report

bench = typer.Typer(invoke_without_command=True, rich_markup_mode=None, pretty_exceptions_enable=False)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Quick = Annotated[bool, typer.Option("--quick", help="Less of everything: a minute or so.")]


@bench.callback()
def choose(
    context: typer.Context,
    listing: Annotated[bool, typer.Option("--list", help="List the benchmarks.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure weft and its rivals in the same run."""
    if context.invoked_subcommand is not None:
        return
    if not listing:
        typer.echo(context.get_help())
    elif as_json:
        typer.echo(json.dumps([{"bench": b.name, "about": b.about, "summary": b.summary} for b in BENCHMARKS.values()]))
    else:
        table = Table(box=None, pad_edge=False, show_header=False)
        for benchmark in BENCHMARKS.values():
            table.add_row(benchmark.name, benchmark.about)
        Console().print(table)


def command(benchmark: Benchmark) -> Callable[..., None]:
    """A function with one option per setting; Typer reads them from its signature."""

    def measure(quick: bool, as_json: bool, **written: str | bool | None) -> None:
        settings = make_settings(benchmark.settings, written, quick=quick)
        report = benchmark.run(settings, say())
        if as_json:
            typer.echo(json.dumps(report.as_json()))
        else:
            # Output to a file or pipe is as wide as the table needs.
            console = Console()
            console = console if console.is_terminal else Console(width=250)
            if benchmark.show is None:
                show_report(report, benchmark, console)
            else:
                benchmark.show(report, console)

    written = [_option_parameter(name, how) for name, how in options(benchmark.settings).items()]
    measure.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*written, _parameter("quick", Quick, False), _parameter("as_json", AsJson, False)]
    )
    measure.__doc__ = describe(benchmark)
    return measure


def _option_parameter(name: str, how: SettingOption) -> inspect.Parameter:
    if how.argument:
        argument = Annotated[str, typer.Argument(metavar=how.metavar, help=how.about)]
        return _parameter(name, argument, inspect.Parameter.empty)
    if how.default is False:
        return _parameter(name, Annotated[bool, typer.Option(f"--{name}", help=how.about)], False)
    written = typer.Option(f"--{name}", metavar=how.metavar, help=_help(how))
    return _parameter(name, Annotated[str | None, written], None)


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _help(how: SettingOption) -> str:
    """The help of an option, with its default.

    >>> _help(SettingOption("Rows.", default=2000, quick=100, parse=int, metavar="N"))
    'Rows. [2000; quick: 100]'
    """
    usual, brief = (",".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in (how.default, how.quick))
    return f"{how.about} [{usual or 'none'}]" if usual == brief else f"{how.about} [{usual}; quick: {brief}]"


def describe(benchmark: Benchmark) -> str:
    """What is measured, and the names in the summary of its JSON; \\b keeps the lines as they are."""
    width = max(map(len, benchmark.summary))
    names = "\n".join(f"  {name:{width}}  {meaning}" for name, meaning in benchmark.summary.items())
    return f"Measure {benchmark.about}.\n\n\b\nIn the summary of --json:\n{names}"


def say() -> Callable[[str], None]:
    """Progress on stderr, with the seconds since the start: stdout is for the report."""
    begun = time.monotonic()
    return lambda text: typer.echo(f"{time.monotonic() - begun:7.1f} s  {text}", err=True)


for _benchmark in BENCHMARKS.values():
    bench.command(_benchmark.name)(command(_benchmark))
