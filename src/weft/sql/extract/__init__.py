"""Queries that people already have: window aggregations in SQL files and PySpark code, as the SQL that weft reads."""

from weft.sql.extract.collect import collect
from weft.sql.extract.found import Found, Imported, Skipped
from weft.sql.extract.write import to_sql

__all__ = ["Found", "Imported", "Skipped", "collect", "to_sql"]
