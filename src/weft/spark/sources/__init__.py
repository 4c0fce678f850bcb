"""Sources that need more than a folder, one a file."""
