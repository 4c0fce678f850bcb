"""Which queries are in the job: how they join, leave, are backfilled and replanned."""
