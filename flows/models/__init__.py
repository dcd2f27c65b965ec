"""Use case: list the versions of a model."""
