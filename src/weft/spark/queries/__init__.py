"""Which queries are in the job: how they join, leave, wait for their past, and are replanned."""
