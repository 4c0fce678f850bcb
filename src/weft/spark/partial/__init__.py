"""Rows to partials, in Spark: native aggregation, row exchange, or hash tables inside tasks."""
