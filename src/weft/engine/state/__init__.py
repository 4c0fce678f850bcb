"""What a bucket keeps: slices with their partials and groups, and their compaction."""
