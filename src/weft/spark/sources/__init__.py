"""Sources as streams, one kind per file."""
