"""Log records of a run: a sentence for people, and values beside it for programs.

Loggers have the names of their modules, under `weft.spark`. The values are in the record's `context`, which the
formatter of PySpark's structured logger writes as JSON. That logger itself is not used: it installs a handler that
prints to stderr.
"""

from __future__ import annotations

import logging
from typing import Any

# Where messages go is the choice of the application: without a handler of its own, nothing is printed.
logging.getLogger("weft").addHandler(logging.NullHandler())


def log_event(logger: logging.Logger, message: str, *, level: int = logging.INFO, **context: Any) -> None:
    """Log what happened; nothing is formatted where nobody listens.

    >>> log_event(logging.getLogger("weft.example"), "query joins", query="q1")
    """
    if logger.isEnabledFor(level):
        values = ", ".join(f"{name}={value}" for name, value in context.items() if value is not None)
        logger.log(level, "%s%s", message, f": {values}" if values else "", extra={"context": context}, stacklevel=2)
