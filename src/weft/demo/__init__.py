"""The demo: a hundred queries over a live stream of trades, what they answer, and what sharing saves."""

from __future__ import annotations

from importlib.resources import files


def query_text() -> str:
    """The hundred queries as Spark SQL."""
    return (files("weft.demo") / "queries.sql").read_text(encoding="utf-8")
