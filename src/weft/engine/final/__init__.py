"""Windows from slices: which are due, which rows were late for them, and their answers."""
