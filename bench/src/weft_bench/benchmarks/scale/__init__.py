"""`weft bench scale`: executors, skewed keys, shuffled bytes, and Spark jobs per batch."""
