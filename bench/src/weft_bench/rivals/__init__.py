"""What weft is compared with: plain Spark jobs, other engines, and other planners."""
