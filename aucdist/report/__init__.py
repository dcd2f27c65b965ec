"""The report of a run: an HTML page and a short table, made from plain results."""
