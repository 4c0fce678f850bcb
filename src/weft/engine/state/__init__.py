"""The state of a bucket: slices with their partials and groups, and their compaction."""
