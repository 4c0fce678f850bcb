"""What tests share: oracles, streams, clusters, brokers, browsers, and processes that are killed."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
