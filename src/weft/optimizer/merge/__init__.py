"""Which trees to merge: candidates, bounds on what a merge gains, and the greedy loop."""
