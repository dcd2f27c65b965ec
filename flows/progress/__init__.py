"""Observers of a run: progress on a terminal, as lines of text or JSON, and as metrics of the cluster."""
