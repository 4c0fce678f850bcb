"""The limits of a service; requests beyond them are refused with the way out."""

from __future__ import annotations

from dataclasses import dataclass

from weft.model import ACQ, WeftError
from weft.sql import refuse


class LimitReached(WeftError):
    """A limit of the service is reached."""


@dataclass(frozen=True, slots=True)
class Limits:
    queries: int = 1000
    state_bytes: int | None = None
    """Of the checkpoint; None: no limit."""
    body_bytes: int = 1 << 20
    """Of a request."""
    overlap: int = 10_000
    """Windows of a query that a row may lie in: Spark's analysis takes time and memory for each of them."""
    streams: int = 100
    """Readers of live answers at a time."""
    read_seconds: float = 30.0
    """How long a request's body may take to arrive, and how long a reader of live answers may read nothing."""

    def check_queries(self, active: int, more: int) -> None:
        if active + more > self.queries:
            raise LimitReached(
                f"{active} queries are in the job, and {more} more would be more than the {self.queries} that it may "
                "have; drop some, or start the service with a larger --max-queries"
            )

    def check_name(self, query: ACQ) -> None:
        """A name must be good for a URL."""
        if query.name in (".", "..") or not query.name.isprintable():
            raise refuse(
                query,
                "this name cannot be part of a URL: it has only dots, or characters that cannot be printed.",
                "Give the query a short name of letters, digits and underscores.",
            )

    def check_overlap(self, query: ACQ) -> None:
        windows = -(-query.window.length // query.window.slide)
        if windows > self.overlap:
            raise refuse(
                query,
                f"a row would lie in {windows} windows of this query, and no more than {self.overlap} are served.",
                "Choose a longer slide or a shorter range.",
            )

    def check_state(self, kept: int) -> None:
        if self.state_bytes is not None and kept >= self.state_bytes:
            raise LimitReached(
                f"the state holds {kept} bytes, and {self.state_bytes} are allowed before queries are refused; drop "
                "queries with long windows, or start the service with a larger --max-state"
            )
