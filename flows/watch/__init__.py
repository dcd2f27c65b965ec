"""Use case: compare new rows, and their labels when they are known, with what a model was trained on."""
