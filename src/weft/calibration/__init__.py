"""The costs of a row, a partial and an operation on this machine, and their file; `measure` measures them."""
