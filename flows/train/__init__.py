"""The command `train`: train a model, evaluate it and write the run folder."""
