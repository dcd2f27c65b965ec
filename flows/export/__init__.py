"""Use case: write a model in the form of another system."""
