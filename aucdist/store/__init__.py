"""Versions of a model in a folder or a bucket, and which of them is in use."""
