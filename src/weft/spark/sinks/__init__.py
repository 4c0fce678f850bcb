"""Sinks outside of the file system, one a file."""
