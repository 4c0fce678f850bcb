"""The `weft` command: one module a command, and the one place where a refusal becomes a message and an exit code."""

from weft.cli.app import app, main

__all__ = ["app", "main"]
