"""What a query does with its aggregates afterwards, evaluated on Arrow columns exactly as Spark would."""
