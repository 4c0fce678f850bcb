"""What a run writes to survive a restart, a file format per module."""
