"""Paused queries: they are not in the job and cost nothing, but are remembered, so that they can be resumed."""

from __future__ import annotations

from weft.model import ACQ
from weft.spark.checkpoint.files import CheckpointFiles

FILE = "paused.json"


class Paused:
    """The SQL of each by its name, in a file of the checkpoint: a restart remembers them too."""

    def __init__(self, store: CheckpointFiles) -> None:
        self._store = store
        self._sql: dict[str, str] = store.read_json(FILE) if store.exists(FILE) else {}

    def outside_job(self, active: list[str]) -> dict[str, str]:
        """Without queries that are active in the job: a crash can leave a query in both places."""
        active_names = {name.lower() for name in active}
        return {name: sql for name, sql in self._sql.items() if name.lower() not in active_names}

    def keep(self, query: ACQ) -> None:
        self._write({**self._sql, query.name: named(query)})

    def forget(self, name: str) -> None:
        if name in self._sql:
            self._write({kept: sql for kept, sql in self._sql.items() if kept != name})

    def _write(self, sql: dict[str, str]) -> None:
        self._store.write_json(FILE, sql)
        self._sql = sql


def named(query: ACQ) -> str:
    """The text of the query with its name, also if its own text has none.

    >>> from weft.sql import parse
    >>> (query,) = parse("SELECT count(*) FROM t [RANGE 1 HOUR]", name="a/b")
    >>> named(query)
    'CREATE VIEW `a/b` AS SELECT count(*) FROM t [RANGE 1 HOUR]'
    """
    if query.text.split(maxsplit=1)[0].upper() == "CREATE":
        return query.text
    quoted = query.name.replace("`", "``")
    return f"CREATE VIEW `{quoted}` AS {query.text}"
