"""`weft bench techniques`: throughput, latency and memory of the techniques of final aggregation."""
