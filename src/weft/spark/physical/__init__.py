"""A plan bound to a stream: which native expressions, columns, tables and buckets each query uses."""
