"""Test whether new rows are like the training rows, by profiles of the rows to which a model was fitted."""
