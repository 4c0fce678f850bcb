"""Seeded queries and rows that several benchmarks share."""
