"""Data sets by name or description, and their URLs in files that others may read."""
