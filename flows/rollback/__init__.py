"""Use case: go back to an earlier version of a model."""
