"""Use case: look at a file, and write a configuration for it."""
