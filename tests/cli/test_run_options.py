"""Lengths of time as the commands take them."""

import pytest
import typer

from weft.cli.stream import parse_seconds


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("500ms", 0.5), ("2 h", 7200), ("20", 20), (30.0, 30)])
def test_a_length_of_time_is_a_number_with_a_unit(text: str | float, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1s", "0s", "5 days", "nan"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="30s"):
        parse_seconds(text)
