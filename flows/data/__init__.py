"""Use case: list, show and verify data sets."""
