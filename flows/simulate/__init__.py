"""Use case: write simulated rows as shards."""
