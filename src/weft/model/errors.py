"""Errors that users see: each says where, what is wrong, and what would work."""

from __future__ import annotations


class WeftError(Exception):
    """The root of everything that weft refuses on purpose; the command line prints it without a traceback."""
