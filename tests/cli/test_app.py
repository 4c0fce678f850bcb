"""What every subcommand has in common: how it refuses, and the options before it."""

import subprocess
import sys
from importlib import import_module
from importlib.metadata import version

import pytest
import typer
from typer.testing import CliRunner

from weft.cli.app import COMMANDS, Commands, app, weft
from weft.model import WeftError

runner = CliRunner()


class Refused(WeftError):
    pass


@pytest.fixture
def refusing() -> typer.Typer:
    """The real root with two commands that fail: one on purpose, one by a bug."""
    failing = typer.Typer(cls=Commands, pretty_exceptions_enable=False)
    failing.callback()(weft)

    @failing.command()
    def refuse() -> None:
        raise Refused("line 2, column 8: nothing here can be served.\nUse something else.")

    @failing.command()
    def crash() -> None:
        raise ZeroDivisionError

    return failing


def test_a_refusal_is_a_message_on_stderr_and_exit_code_2(refusing: typer.Typer) -> None:
    result = runner.invoke(refusing, ["refuse"])
    assert result.exit_code == 2
    assert result.stderr == "line 2, column 8: nothing here can be served.\nUse something else.\n"
    assert result.stdout == ""


@pytest.mark.parametrize("words", [["--debug", "refuse"], ["refuse", "--debug"]])
def test_debug_lets_the_traceback_through_wherever_it_stands(refusing: typer.Typer, words: list[str]) -> None:
    assert isinstance(runner.invoke(refusing, words).exception, Refused)


def test_a_bug_is_never_dressed_up_as_a_refusal(refusing: typer.Typer) -> None:
    assert isinstance(runner.invoke(refusing, ["crash"]).exception, ZeroDivisionError)


def test_version_is_the_package_s() -> None:
    result = runner.invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"weft {version('weft')}\n")


def test_an_unknown_command_is_refused_with_exit_code_2() -> None:
    result = runner.invoke(app, ["wave"])
    assert result.exit_code == 2
    assert "wave" in result.stderr


def test_python_m_weft_is_the_same_command_and_prints_no_traceback(tmp_path) -> None:
    (tmp_path / "empty.sql").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "weft", "plan", str(tmp_path / "empty.sql")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_line_of_the_help_is_how_the_help_of_its_command_begins(name: str) -> None:
    assert f"  {name} " in runner.invoke(app, ["--help"]).stdout
    module, function, line = COMMANDS[name]
    command = getattr(import_module(module), function)
    described = command.registered_callback.callback if isinstance(command, typer.Typer) else command
    assert described.__doc__.startswith(line.removesuffix("."))


def test_the_help_imports_no_command() -> None:
    code = (
        "import sys; from weft.cli.app import COMMANDS, app; app(['--help'], standalone_mode=False); "
        "assert not {command.module for command in COMMANDS.values()} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
