"""Partials to answers, in executors: one task per bucket, and what it reports."""
