"""Use case: keep a model current, by one run a night: train, compare, promote, score and watch."""
