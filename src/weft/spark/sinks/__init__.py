"""Sinks of answers and side outputs, one kind per file."""
