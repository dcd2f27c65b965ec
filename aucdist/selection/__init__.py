"""Folds and the search over parameters."""
