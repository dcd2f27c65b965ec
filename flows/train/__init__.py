"""Use case: train a model, evaluate it and write the run folder."""
