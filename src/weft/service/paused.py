"""Paused queries: not in the job, where they would cost something, but remembered, so that they can be resumed."""

from __future__ import annotations

from weft.model import ACQ
from weft.spark.checkpoint.files import CheckpointFiles

FILE = "paused.json"


class Paused:
    """The SQL of each by its name, in a file of the checkpoint: a restart remembers them too."""

    def __init__(self, store: CheckpointFiles) -> None:
        self._store = store
        self._sql: dict[str, str] = store.read_json(FILE) if store.exists(FILE) else {}

    def beside(self, present: list[str]) -> dict[str, str]:
        """Those that are not in the job: a query that a crash left in both places runs in the job."""
        there = {name.lower() for name in present}
        return {name: sql for name, sql in self._sql.items() if name.lower() not in there}

    def keep(self, query: ACQ) -> None:
        self._write({**self._sql, query.name: named(query)})

    def forget(self, name: str) -> None:
        if name in self._sql:
            self._write({kept: sql for kept, sql in self._sql.items() if kept != name})

    def _write(self, sql: dict[str, str]) -> None:
        self._store.write_json(FILE, sql)
        self._sql = sql


def named(query: ACQ) -> str:
    """The query as a text that names it, also where its own does not.

    >>> from weft.sql import parse
    >>> (query,) = parse("SELECT count(*) FROM t [RANGE 1 HOUR]", name="a/b")
    >>> named(query)
    'CREATE VIEW `a/b` AS SELECT count(*) FROM t [RANGE 1 HOUR]'
    """
    if query.text.split(maxsplit=1)[0].upper() == "CREATE":
        return query.text
    quoted = query.name.replace("`", "``")
    return f"CREATE VIEW `{quoted}` AS {query.text}"
