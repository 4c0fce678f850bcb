"""Imports existing queries: window aggregations in SQL files and PySpark code, as SQL that weft reads."""

from weft.sql.extract.collect import collect
from weft.sql.extract.extracted import ExtractedQuery, Imported, Skipped
from weft.sql.extract.write import to_sql

__all__ = ["ExtractedQuery", "Imported", "Skipped", "collect", "to_sql"]
