"""What this machine takes for a row, a partial, an operation: the values and their files; `measure` fills them."""
