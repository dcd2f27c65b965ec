"""Use case: make the model of a run the one in use."""
