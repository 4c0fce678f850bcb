"""Fixture files: input, expected, blank line; `----` stands between them where one of both has several lines."""

from __future__ import annotations

from pathlib import Path


def read_cases(file: Path) -> list[tuple[str, str]]:
    """The cases of a file. Lines that begin with `#` are comments."""
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    blocks = "\n".join(lines).split("\n\n")
    return [_split(block.strip("\n")) for block in blocks if block.strip()]


def _split(block: str) -> tuple[str, str]:
    text, rule, expected = block.partition("\n----\n")
    if not rule:
        text, _, expected = block.partition("\n")
    return text, expected
