"""Assign rows to folds, and find groups of rows."""
