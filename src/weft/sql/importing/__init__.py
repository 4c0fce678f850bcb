"""Queries that people already have: window aggregations in SQL files and PySpark code, as the SQL that weft reads."""

from weft.sql.importing.collect import collect
from weft.sql.importing.found import Found, Imported, Skipped
from weft.sql.importing.write import to_sql

__all__ = ["Found", "Imported", "Skipped", "collect", "to_sql"]
