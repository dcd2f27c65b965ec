"""Use case: write a data set as shards."""
