"""Test whether new rows are like the training rows, by profiles of the rows that a model was fitted to."""
