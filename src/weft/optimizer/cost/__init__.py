"""What a plan costs: in operations as the papers count, and in seconds as this machine measures."""
